"""Tokens: the texts by which an object can be found. The tokens of labels, fields, owners, images and namespaces share
one inverted index.

A label gives two tokens, its key and its key with the value, so that every operator of a selector is a question about
tokens. The separator cannot occur in a label key or in a field path. A text that is too long for the indexes of a
database is replaced by its digest: equal texts have equal tokens, and tokens are compared but never read.
"""

import hashlib
from collections.abc import Iterator, Mapping

LABEL, IMAGE, NAMESPACE, _FIELD, _OWNER = "l:", "i:", "n:", "f:", "o:"
_LONGEST = 600


def label_tokens(labels: Mapping[str, str]) -> Iterator[str]:
    for key, value in labels.items():
        yield label_key_token(key)
        yield label_token(key, value)


def label_key_token(key: str) -> str:
    return _bounded(f"{LABEL}{key}")


def label_token(key: str, value: str) -> str:
    return _bounded(f"{LABEL}{key}={value}")


def field_token(path: str, value: str) -> str:
    return _bounded(f"{_FIELD}{path}={value}")


def owner_token(uid: str) -> str:
    return _bounded(f"{_OWNER}{uid}")


def image_token(image: str) -> str:
    return _bounded(f"{IMAGE}{image}")


def namespace_token(namespace: str) -> str:
    return _bounded(f"{NAMESPACE}{namespace}")


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:2]}\x01{hashlib.sha256(text.encode()).hexdigest()}"


def is_owner(token: str) -> bool:
    return token.startswith(_OWNER)


def is_searched(token: str) -> bool:
    """Whether searches look into the text of the token: labels with their value, images, namespaces."""
    return token.startswith((IMAGE, NAMESPACE)) or (token.startswith(LABEL) and "=" in token)
