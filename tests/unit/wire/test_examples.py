"""The examples in the comments of the protos are requests that a client could send."""

import re
from pathlib import Path

import pytest

from kairship.wire import methods, read

API = Path(__file__).parents[3] / "api"
EXAMPLE = re.compile(r"^// Example: `([^`]+)`\n(?://.*\n)*message (\w+) ", re.MULTILINE)
EXAMPLES = {
    f"{proto.parent.relative_to(API).as_posix().replace('/', '.')}.{message}": text.replace("\n// ", " ")
    for proto in sorted(API.glob("kairship/**/*.proto"))
    for text, message in EXAMPLE.findall(proto.read_text())
}


def test_no_example_is_overlooked() -> None:
    written = sum(proto.read_text().count("// Example:") for proto in API.glob("kairship/**/*.proto"))
    assert written == len(EXAMPLES) > 5


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_only_fields_of_its_request(name: str) -> None:
    requests = {method.request.desc().type_name: method.request for method in methods().values()}
    assert read(requests[name], EXAMPLES[name].encode(), strict=True).message != requests[name]()
