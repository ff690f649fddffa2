"""Says why a search found an object: which word was found in which part of it, for display to the user."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from kairship.index.images import has_images, images_of
from kairship.index.search.model import SHORT, Hit, Rank, names_kind


class Highlight(NamedTuple):
    word: str
    rank: Rank
    text: str
    """The text in which the word was found."""


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata


_decoder = msgspec.json.Decoder(_Object)


def highlights(hit: Hit, words: tuple[str, ...]) -> Iterator[Highlight]:
    """The best highlight for each word."""
    where = hit.position
    labels = _decoder.decode(hit.body).metadata.labels or {}
    images = images_of(hit.body) if has_images(where.kind) else frozenset[str]()
    for word in words:
        if found := _found(word, hit, labels, images):
            yield Highlight(word, *found)


def _found(word: str, hit: Hit, labels: dict[str, str], images: frozenset[str]) -> tuple[Rank, str] | None:
    where, is_short = hit.position, len(word) < SHORT
    if where.name.startswith(word):
        return Rank.NAME_BEGINS, where.name
    if not is_short and word in where.name.lower():
        return Rank.NAME, where.name
    if names_kind(word, where.kind, hit.resource):
        return Rank.KIND, hit.resource.kind
    if where.namespace.startswith(word) if is_short else word in where.namespace:
        return Rank.NAMESPACE, where.namespace
    for key, value in sorted(labels.items()):
        pair = f"{key}={value}"
        if f"={word}" in pair.lower() if is_short else word in pair.lower():
            return Rank.LABEL, pair
    for image in sorted(images):
        if f"/{word}" in f"/{image.lower()}" if is_short else word in image.lower():
            return Rank.IMAGE, image
    return None
