"""Which formats the index answers in: JSON as it is stored."""

from functools import lru_cache


@lru_cache(maxsize=256)
def is_plain_json(accept: str) -> bool:
    """Whether the client prefers JSON as it is: neither protobuf, which is faster direct, nor a table."""
    first = accept.partition(",")[0].strip()
    media, *parameters = (part.strip() for part in first.split(";"))
    return media in {"application/json", "*/*", ""} and not any(part.startswith("as=") for part in parameters)
