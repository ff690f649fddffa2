"""The committed generated files are up to date, and a change that breaks clients is refused."""

import filecmp
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from protobuf.wkt import FileDescriptorSet
from protovalidate._gen.buf.validate import validate_pb

from kairship.wire import descriptors

ROOT = Path(__file__).parent.parent.parent


def generate(root: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, root / "api/generate.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def files(folder: Path) -> set[str]:
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if "__pycache__" not in name}


def test_what_is_committed_is_what_is_generated(tmp_path: Path) -> None:
    run = generate(ROOT, "--into", tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    for folder in ("src/kairship/gen", "console/src/gen"):
        generated, committed = tmp_path / folder, ROOT / folder
        assert files(generated) == files(committed), "run `make gen`"
        _, different, unreadable = filecmp.cmpfiles(generated, committed, files(generated), shallow=False)
        assert (different, unreadable) == ([], []), "run `make gen`"
    document = "api/openapi/kairship.json"
    assert (tmp_path / document).read_bytes() == (ROOT / document).read_bytes(), "run `make gen`"


def test_the_rules_are_compiled_with_the_protos_that_check_them() -> None:
    """The two packages are the Go module with the proto sources and the Python package with the generated code."""
    files = {file.name: file for file in FileDescriptorSet.from_binary(descriptors()).file}
    compiled, checking = files["buf/validate/validate.proto"], validate_pb.desc().proto
    # Options of the file are left out, because they name packages of other languages.
    assert compiled.message_type == checking.message_type
    assert compiled.enum_type == checking.enum_type
    assert compiled.extension == checking.extension


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("bool public = 2;", "int32 public = 2;", 'Field "2" with name "public" on message "Repository" changed type'),
        ("// A name of an image.\n", "", 'Message "Tag" should have a non-empty comment'),
        ("int64 tag_count = 3;", "int64  tag_count = 3;", "-  int64  tag_count = 3;"),
    ],
)
def test_a_bad_change_of_a_proto_is_refused(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    shutil.copytree(ROOT / "api", tmp_path / "api")
    proto = tmp_path / "api/kairship/image/v1alpha1/image.proto"
    text = proto.read_text()
    assert text.count(old) == 1
    proto.write_text(text.replace(old, new))
    run = generate(tmp_path, "--into", tmp_path)
    assert run.returncode != 0
    assert complaint in run.stdout + run.stderr
    assert not (tmp_path / "src").exists()
