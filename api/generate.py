"""Generates everything that is made of the protos: Python messages, descriptors and the OpenAPI document.

    python api/generate.py                 what `make gen` runs; it lints first
    python api/generate.py --into DIR      the same files in another tree, to compare
    python api/generate.py --publish       also declare the protos as they are published: api/image.binpb

A change that would break clients of what was published is refused (`buf breaking`). `--publish` belongs to a release.
Nothing is downloaded: buf and protoc-gen-py are Python packages, protoc-gen-openapiv2 is a binary of the engine.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from kairship.engine import Engine

ROOT = Path(__file__).resolve().parent.parent
IMAGE = Path("api/image.binpb")
OPENAPI = Path("api/openapi/kairship.json")
DESCRIPTORS = Path("src/kairship/gen/descriptors.binpb")

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
    """The command `buf`, with the plugins that the templates name on its path."""

    def __init__(self, engine: Engine) -> None:
        tools = Path(sys.executable).parent
        plugins = engine.binary("protoc-gen-openapiv2").parent
        self._buf = tools / "buf"
        self._environment = os.environ | {"PATH": os.pathsep.join(map(str, (tools, plugins, os.environ["PATH"])))}

    def __call__(self, *arguments: str | Path) -> None:
        subprocess.run([self._buf, *arguments], cwd=ROOT, env=self._environment, check=True, timeout=120)


def check(buf: Buf) -> None:
    buf("format", "api", "--path", "api/kairship", "--diff", "--exit-code")
    buf("lint", "api")
    buf("breaking", "api", "--against", IMAGE)


def generate(buf: Buf, into: Path) -> None:
    buf("generate", "--template", "api/buf.gen.yaml", "--output", into)
    buf("build", "api", "--exclude-source-info", "--as-file-descriptor-set", "--output", into / DESCRIPTORS)
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
    buf = Buf(asyncio.run(Engine.find()))
    try:
        check(buf)
        generate(buf, chosen.into.resolve())
        if chosen.publish:
            buf("build", "api", "--path", "api/kairship", "--exclude-source-info", "--output", IMAGE)
    except subprocess.CalledProcessError as failure:
        return failure.returncode  # buf has said what is wrong
    return 0


if __name__ == "__main__":
    sys.exit(main())
