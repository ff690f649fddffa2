"""Generates what is made of the protos: messages in Python and in TypeScript, descriptors, the OpenAPI document.

    python api/generate.py                 what `make gen` runs; it lints first
    python api/generate.py --into DIR      the same files in another tree, to compare
    python api/generate.py --publish       also declare the protos as they are published: api/image.binpb

A change that would break clients of what was published is refused (`buf breaking`). `--publish` belongs to a release.

Protos of others are not kept in this folder: each run copies it into a temporary workspace and adds them there, from
packages that are locked by hash. Google's come from a Python package, those of buf.validate from a Go module that
engine/openapi requires, at the version that the Python package protovalidate implements. `kairship engine build --group
gen` fetches that module with the sources of protoc-gen-openapiv2; buf and protoc-gen-py are Python packages;
protoc-gen-es is one of the console's npm packages, which are installed here when they are missing or their lock has
changed. Otherwise nothing is downloaded.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib.metadata import distribution
from pathlib import Path

import console_packages

from kairship.engine import Engine, lock, toolchain
from kairship.engine.errors import EngineError
from kairship.engine.progress import silent

ROOT = Path(__file__).resolve().parent.parent
IMAGE = Path("api/image.binpb")
OPENAPI = Path("api/openapi/kairship.json")
DESCRIPTORS = Path("src/kairship/gen/descriptors.binpb")

# What ours import, and what google.rpc.Status carries in `details`.
GOOGLE = (
    "google/api/annotations.proto",
    "google/api/http.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
)
VALIDATE = "buf/validate/validate.proto"
VALIDATE_MODULE = "github.com/bufbuild/protovalidate"

# What protoc-gen-openapiv2 cannot know: where packages are merged into one document, there is no file to say it in.
ABOUT = {
    "info": {
        "title": "Kairship",
        "description": "The management plane of many Karmada control planes.",
        "version": "v1alpha1",
        "license": {"name": "Apache-2.0"},
    },
    "securityDefinitions": {
        "bearer": {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Bearer` and an access token.",
        }
    },
    "security": [{"bearer": []}],
}


class Buf:
    """The command `buf` in a workspace, with the plugins that the templates name on its path."""

    def __init__(self, workspace: Path, plugins: Iterable[Path]) -> None:
        tools = Path(sys.executable).parent
        path = (tools, *plugins, os.environ["PATH"])
        self._workspace = workspace
        self._buf = tools / "buf"
        self._environment = os.environ | {"PATH": os.pathsep.join(map(str, path))}

    def __call__(self, *arguments: str | Path) -> None:
        subprocess.run([self._buf, *arguments], cwd=self._workspace, env=self._environment, check=True, timeout=120)


def gather(workspace: Path, engine: Engine) -> None:
    """Fill a workspace: this folder, and beside our protos those of others."""
    api = workspace / "api"
    shutil.copytree(ROOT / "api", api)
    package = distribution("googleapis-common-protos")
    sources = {name: Path(str(package.locate_file(name))) for name in GOOGLE}
    sources[VALIDATE] = validate_module(engine) / "proto/protovalidate" / VALIDATE
    for name, source in sources.items():
        (api / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, api / name)


def validate_module(engine: Engine) -> Path:
    """Where Go keeps the module that has buf.validate; fetched where it is missing, and checked against go.sum."""
    requiring = engine.catalogue.find("protoc-gen-openapiv2").pinned
    go = asyncio.run(find_go(engine, minimum=requiring.gomod.go))
    environment = os.environ | {"GOFLAGS": "-mod=readonly", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    if go.root:
        environment["GOROOT"] = str(go.root)

    def run(*arguments: str) -> str:
        return subprocess.run(
            [go.path, *arguments],
            cwd=requiring.directory,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=120,
        ).stdout

    run("mod", "download", VALIDATE_MODULE)
    return Path(run("list", "-m", "-f", "{{.Dir}}", VALIDATE_MODULE).strip())


async def find_go(engine: Engine, *, minimum: str) -> toolchain.Go:
    """The Go that the engine is built with."""
    async with cache_held(engine) as work:
        return await toolchain.ensure(
            minimum=minimum,
            requirements=engine.catalogue.requirements,
            cache=engine.cache,
            work=work,
            environ=os.environ,
            progress=silent,
        )


async def find_plugins(engine: Engine) -> tuple[Path, ...]:
    """Folders of the plugins that are no Python packages, and of what they run on."""
    async with cache_held(engine) as work:
        packages = await console_packages.ensure(ROOT / "console", cache=engine.cache, work=work)
    return (engine.binary("protoc-gen-openapiv2").parent, *packages)


@asynccontextmanager
async def cache_held(engine: Engine) -> AsyncIterator[Path]:
    async with lock.awaited(engine.cache.lock, on_wait=report_wait):
        with engine.cache.workspace() as work:
            yield work


def report_wait(pid: int | None) -> None:
    sys.stderr.write(f"waiting for a build of the engine (process {pid})\n")


def check(buf: Buf) -> None:
    buf("format", "api", "--path", "api/kairship", "--path", "api/grpc", "--diff", "--exit-code")
    buf("lint", "api")
    buf("breaking", "api", "--against", IMAGE)


def generate(buf: Buf, into: Path) -> None:
    buf("generate", "--template", "api/buf.gen.yaml", "--output", into)
    buf("generate", "--template", "api/buf.gen.typescript.yaml", "--output", into)
    # What gRPC reflection tells of: nothing that only our own processes say to each other.
    public = ("--exclude-path", "api/kairship/internal", "--exclude-source-info", "--as-file-descriptor-set")
    buf("build", "api", *public, "--output", into / DESCRIPTORS)
    buf("generate", "--template", "api/openapi/buf.gen.yaml", "--output", into)
    made = into / OPENAPI.with_suffix(".swagger.json")
    document = json.loads(made.read_text()) | ABOUT
    made.unlink()
    (into / OPENAPI).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--into", type=Path, default=ROOT, metavar="DIR")
    arguments.add_argument("--publish", action="store_true")
    chosen = arguments.parse_args()
    engine = asyncio.run(Engine.find())
    with tempfile.TemporaryDirectory(prefix="kairship-api-") as workspace:
        try:
            gather(Path(workspace), engine)
            check(Buf(Path(workspace), ()))
            buf = Buf(Path(workspace), asyncio.run(find_plugins(engine)))
            generate(buf, chosen.into.resolve())
            if chosen.publish:
                ours = ("--path", "api/kairship", "--exclude-path", "api/kairship/internal", "--exclude-source-info")
                buf("build", "api", *ours, "--output", ROOT / IMAGE)
        except subprocess.CalledProcessError as failure:
            return failure.returncode  # buf or go has said what is wrong
        except (EngineError, console_packages.PackagesError) as failure:
            sys.stderr.write(f"{failure}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
