"""Loads YAML that users supply, so that its author cannot choose how much that costs.

The loader builds a document by recursion in C: a document that is nested deeply enough crashes the process, which no
`except` prevents. Aliases expand a few lines into gigabytes, and a megabyte of commas becomes a quarter of a gigabyte.
So the text is first parsed as a stream of events, which keeps nothing, and loaded only when it is known to be harmless.
Errors never quote it, because it may be a Secret. The largest documents take seconds: load them in a thread.
"""

from typing import Any

import yaml

from kairship.kube.errors import ConfigError

_DEEPEST = 100  # the deepest CRDs have about 35 levels
_LONGEST_NUMBER = 64
_TEXT = "tag:yaml.org,2002:str"
_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"


class _Loader(yaml.CSafeLoader):
    """Reads YAML as Kubernetes does.

    A date stays text; so does a lone `=`, which occurs in the schemas of CRDs, and 12:30, which YAML 1.1 takes for a
    number.
    """

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        if ":" in node.value:
            return node.value
        if len(node.value) > _LONGEST_NUMBER:
            raise ValueError("the number is too long")
        return self.construct_yaml_int(node) if node.tag == _INTEGER else self.construct_yaml_float(node)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":value"))]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor(_INTEGER, _Loader.construct_number)
_Loader.add_constructor(_FLOAT, _Loader.construct_number)


def load_documents(content: str | bytes, *, called: str, max_size: int, max_parts: int) -> list[Any]:
    """Returns every document in `content`. A `ConfigError` names the text as it is `called`.

    A part is a scalar or one end of a collection; usual documents have about one part per twenty bytes.
    """
    if len(content) > max_size:
        raise ConfigError(f"{called} is larger than {max_size} bytes")
    try:
        _refuse_bomb(content, called, max_parts)
        return list(yaml.load_all(content, Loader=_Loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(f"{called} is not YAML" + (f" (line {mark.line + 1})" if mark else "")) from None
    except ValueError:  # a malformed number, or text that is not Unicode
        raise ConfigError(f"{called} has a value that cannot be read") from None


def _refuse_bomb(content: str | bytes, called: str, max_parts: int) -> None:
    depth = 0
    for number, event in enumerate(yaml.parse(content, Loader=_Loader)):
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError(f"{called} has YAML aliases: write out what they stand for")
        # A tag such as `!!int` passes any text to a constructor that expects a number.
        if getattr(event, "tag", None) not in {None, _TEXT}:
            raise ConfigError(f"{called} has YAML tags: leave them out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise ConfigError(f"{called} is nested deeper than {_DEEPEST} levels")
        if number > max_parts:
            raise ConfigError(f"{called} has more than {max_parts} parts")
