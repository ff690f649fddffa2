// The page to try the API. It sets everything as text, never as markup, and keeps the token in its field only.
"use strict";

const LONGEST_SHOWN = 200_000;
const VERBS = ["get", "post", "put", "patch", "delete"];

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function resolve(spec, schema) {
  return schema && schema.$ref ? spec.definitions[schema.$ref.replace("#/definitions/", "")] : schema;
}

// Makes an example body: every field once, a few levels deep.
function example(spec, schema, depth = 4) {
  const found = resolve(spec, schema) ?? {};
  if (found.enum) return found.default ?? found.enum[0];
  if (found.type === "array") return depth ? [example(spec, found.items, depth - 1)] : [];
  if (found.type === "boolean") return false;
  if (found.type === "integer" || found.type === "number") return 0;
  if (found.type === "string") return found.format === "int64" ? "0" : "";
  if (!depth || !found.properties) return {};
  return Object.fromEntries(
    Object.entries(found.properties).map(([name, inner]) => [name, example(spec, inner, depth - 1)]),
  );
}

function input(parameter) {
  const choices = parameter.enum ?? parameter.items?.enum;
  if (!choices) return make("input", { placeholder: parameter.type === "array" ? "a, b" : parameter.type });
  const select = make("select", { multiple: parameter.type === "array" });
  if (!select.multiple) select.append(make("option", { value: "" }, ""));
  select.append(...choices.map((choice) => make("option", { value: choice }, choice)));
  return select;
}

function valuesOf(field, parameter) {
  const values = field.selectedOptions ? [...field.selectedOptions].map((option) => option.value) : [field.value];
  const split = parameter.type === "array" && !field.selectedOptions ? values[0].split(",").map((v) => v.trim()) : values;
  return split.filter((value) => value !== "");
}

function address(path, fields) {
  const query = new URLSearchParams();
  let filled = path;
  for (const [parameter, field] of fields) {
    const values = valuesOf(field, parameter);
    if (parameter.in === "path") filled = filled.replace(`{${parameter.name}}`, encodeURIComponent(values[0] ?? ""));
    else values.forEach((value) => query.append(parameter.name, value));
  }
  return query.size ? `${filled}?${query}` : filled;
}

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curl(verb, target, body) {
  const parts = ["curl", "-X", verb, "-H", '"Authorization: Bearer $TOKEN"'];
  if (body !== undefined) parts.push("-H", "'Content-Type: application/json'", "-d", quoted(body));
  return [...parts, quoted(location.origin + target)].join(" ");
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function send(verb, target, body, shown, signal) {
  const headers = { Accept: "application/json" };
  const token = document.getElementById("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const started = performance.now();
  const reply = await fetch(target, { method: verb, headers, body, signal });
  const seconds = ((performance.now() - started) / 1000).toFixed(3);
  const about = [`${reply.status} ${reply.statusText}, ${seconds} s, request ${reply.headers.get("X-Request-Id") ?? "?"}`];
  if (reply.headers.get("Warning")) about.push(reply.headers.get("Warning"));
  const heading = `${about.join("\n")}\n\n`;
  if (!reply.headers.get("Content-Type")?.startsWith("text/event-stream")) {
    shown.textContent = heading + pretty(await reply.text()).slice(0, LONGEST_SHOWN);
    return;
  }
  shown.textContent = heading;
  for (const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    shown.textContent = (shown.textContent + value).slice(-LONGEST_SHOWN);
  }
}

function form(spec, path, verb, operation) {
  const parameters = operation.parameters ?? [];
  const fields = parameters.filter((p) => p.in !== "body").map((parameter) => [parameter, input(parameter)]);
  const bodyParameter = parameters.find((parameter) => parameter.in === "body");
  const body = bodyParameter && make("textarea", { spellcheck: false, ariaLabel: "Body" });
  if (body) body.value = JSON.stringify(example(spec, bodyParameter.schema), null, 2);
  const rows = fields.map(([parameter, field]) => {
    field.setAttribute("aria-label", parameter.name);
    const name = make("td", { className: parameter.required ? "required" : "" }, parameter.name);
    return make("tr", {}, name, make("td", {}, field), make("td", { className: "summary" }, parameter.description ?? ""));
  });
  const shown = make("pre", { hidden: true });
  const go = make("button", { type: "submit" }, "Send");
  const copy = make("button", { type: "button" }, "Show as curl");
  const element = make("form", {}, make("table", {}, ...rows), ...(body ? [body] : []), make("p", {}, go, copy), shown);
  let running;
  copy.addEventListener("click", () => {
    shown.hidden = false;
    shown.textContent = curl(verb.toUpperCase(), address(path, fields), body?.value);
  });
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) return running.abort();
    running = new AbortController();
    go.textContent = "Stop";
    shown.hidden = false;
    shown.textContent = "…";
    try {
      await send(verb.toUpperCase(), address(path, fields), body?.value, shown, running.signal);
    } catch (error) {
      shown.textContent += `\n${error.name === "AbortError" ? "stopped" : error}`;
    } finally {
      running = undefined;
      go.textContent = "Send";
    }
  });
  return element;
}

function row(spec, path, verb, operation) {
  const heading = make(
    "summary",
    {},
    make("span", { className: "verb" }, verb.toUpperCase()),
    make("code", {}, path),
    make("span", { className: "summary" }, operation.summary ?? ""),
  );
  const details = make("details", { id: operation.operationId }, heading);
  details.dataset.text = [verb, path, operation.operationId, operation.summary].join(" ").toLowerCase();
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) {
      const about = make("p", { className: "about" }, operation.description ?? "");
      details.append(about, form(spec, path, verb, operation));
    }
  });
  return details;
}

function filter(sections, wanted) {
  const words = wanted.toLowerCase().split(/\s+/);
  let count = 0;
  for (const section of sections) {
    let any = false;
    for (const details of section.querySelectorAll("details")) {
      details.hidden = !words.every((word) => details.dataset.text.includes(word));
      any ||= !details.hidden;
      count += details.hidden ? 0 : 1;
    }
    section.hidden = !any;
  }
  document.getElementById("count").textContent = `${count} operations`;
}

async function start() {
  const spec = await (await fetch("/openapi.json")).json();
  const groups = new Map();
  for (const [path, item] of Object.entries(spec.paths)) {
    for (const verb of VERBS.filter((name) => item[name])) {
      const tag = item[verb].tags?.[0] ?? "";
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(row(spec, path, verb, item[verb]));
    }
  }
  const sections = [...groups].map(([tag, rows]) => make("section", {}, make("h2", {}, tag), ...rows));
  document.getElementById("operations").append(...sections);
  const find = document.getElementById("find");
  find.addEventListener("input", () => filter(sections, find.value));
  filter(sections, "");
}

start().catch((error) => {
  document.getElementById("count").textContent = `The OpenAPI document could not be loaded: ${error}`;
});
