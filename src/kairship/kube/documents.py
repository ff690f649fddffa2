"""YAML that somebody handed in, read so that its author cannot choose what that costs.

The loader builds a document by recursion in C: nested deep enough it ends the process, which no `except` prevents.
Aliases unfold a few lines into gigabytes, and a megabyte of commas becomes a quarter of one. So the text is first run
through as a flow of events, which keeps nothing, and loaded only when it is known to be harmless. Errors never quote
it, for it may be a Secret. The largest take seconds: read them in a thread.
"""

from typing import Any

import yaml

from .errors import ConfigError

_DEEPEST = 100  # the deepest CRDs have about 35 levels
_LONGEST_NUMBER = 64
_TEXT = "tag:yaml.org,2002:str"
_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it.

    A date stays text, and so does a lone `=`, which occurs in the schemas of CRDs, and 12:30, for others a number.
    """

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        if ":" in node.value:
            return node.value
        if len(node.value) > _LONGEST_NUMBER:
            raise ValueError("a number longer than any")
        return self.construct_yaml_int(node) if node.tag == _INTEGER else self.construct_yaml_float(node)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":value"))]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor(_INTEGER, _Loader.construct_number)
_Loader.add_constructor(_FLOAT, _Loader.construct_number)


def load_documents(content: str | bytes, *, called: str, max_size: int, max_parts: int) -> list[Any]:
    """Every document in `content`. What cannot or must not be read is a `ConfigError` about what is `called` so.

    A part is a scalar or one end of a collection: about one for twenty bytes of what people write.
    """
    if len(content) > max_size:
        raise ConfigError(f"{called} is larger than {max_size} bytes")
    try:
        _refuse_bomb(content, called, max_parts)
        return list(yaml.load_all(content, Loader=_Loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(f"{called} is not YAML" + (f" (line {mark.line + 1})" if mark else "")) from None
    except ValueError:  # a number that is none, text that is no Unicode
        raise ConfigError(f"{called} has a value that cannot be read") from None


def _refuse_bomb(content: str | bytes, called: str, max_parts: int) -> None:
    depth = 0
    for number, event in enumerate(yaml.parse(content, Loader=_Loader)):
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError(f"{called} has YAML aliases: write out what they stand for")
        # `!!int` and its like take any text to constructors that were made for what looks like a number.
        if getattr(event, "tag", None) not in {None, _TEXT}:
            raise ConfigError(f"{called} has YAML tags: leave them out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise ConfigError(f"{called} is nested deeper than {_DEEPEST} levels")
        if number > max_parts:
            raise ConfigError(f"{called} has more than {max_parts} parts")
