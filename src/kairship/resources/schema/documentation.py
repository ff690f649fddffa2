"""Reads the documentation of fields from the docstrings below them.

Python does not keep these strings, so they are read from the source, once per class and only when a schema is made.
"""

import ast
import functools
import inspect
import textwrap


@functools.cache
def field_docs(cls: type) -> dict[str, str]:
    """The docstrings of the fields of `cls` and of its base classes, by field. Fields without one are left out."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if "__annotations__" in base.__dict__ and hasattr(base, "__struct_fields__"):
            docs |= _own_docs(base)
    return docs


def class_doc(cls: type) -> str:
    return flow(cls.__doc__ or "")


def flow(text: str) -> str:
    """The text without the line breaks of the source. Paragraphs are kept."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _own_docs(cls: type) -> dict[str, str]:
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 -- the source of a class is a class
    docs = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = flow(text)
    return docs
