"""Generates all files from the protos: messages in Python and TypeScript, descriptors, and the OpenAPI document.

    python api/generate.py                 lints and generates; `make gen` runs this
    python api/generate.py --into DIR      generates the same files in another tree, for comparison
    python api/generate.py --publish       also records the present protos as published, in api/image.binpb

A change that would break clients of the published protos is refused (`buf breaking`). Use `--publish` for a release.

Third-party protos are not stored in this folder: each run copies the folder into a temporary workspace and adds them
there, from packages that are locked by hash. Google's protos come from a Python package. Those of buf.validate come
from a Go module that engine/openapi requires, at the version that the Python package protovalidate implements.
`kairship engine build --group gen` downloads that module with the sources of protoc-gen-openapiv2. buf and
protoc-gen-py are Python packages. protoc-gen-es is one of the console's npm packages, which are installed here when
they are missing or their lock file has changed. Nothing else is downloaded.
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

# The protos of Google that ours import, and those that google.rpc.Status has in `details`.
GOOGLE = (
    "google/api/annotations.proto",
    "google/api/http.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
)
VALIDATE = "buf/validate/validate.proto"
VALIDATE_MODULE = "github.com/bufbuild/protovalidate"

# Settings that are in no proto file, because several packages are merged into one OpenAPI document.
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
    """The command `buf` in a workspace, with the plugins of the templates on its PATH."""

    def __init__(self, workspace: Path, plugins: Iterable[Path]) -> None:
        tools = Path(sys.executable).parent
        path = (tools, *plugins, os.environ["PATH"])
        self._workspace = workspace
        self._buf = tools / "buf"
        self._environment = os.environ | {"PATH": os.pathsep.join(map(str, path))}

    def __call__(self, *arguments: str | Path) -> None:
        subprocess.run([self._buf, *arguments], cwd=self._workspace, env=self._environment, check=True, timeout=120)


def gather(workspace: Path, engine: Engine) -> None:
    """Fill a workspace with this folder and with the third-party protos."""
    api = workspace / "api"
    shutil.copytree(ROOT / "api", api)
    package = distribution("googleapis-common-protos")
    sources = {name: Path(str(package.locate_file(name))) for name in GOOGLE}
    sources[VALIDATE] = validate_module(engine) / "proto/protovalidate" / VALIDATE
    for name, source in sources.items():
        (api / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, api / name)


def validate_module(engine: Engine) -> Path:
    """The folder of the Go module with buf.validate. It is downloaded if it is missing, and checked against go.sum."""
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
    """The folders of the plugins that are not Python packages, and of the programs that run them."""
    async with cache_held(engine) as work:
        packages = await console_packages.ensure(ROOT / "console", cache=engine.cache, work=work)
    return (engine.binary("protoc-gen-openapiv2").parent, *packages)


@asynccontextmanager
async def cache_held(engine: Engine) -> AsyncIterator[Path]:
    async with lock.held_eventually(engine.cache.lock, on_wait=report_wait):
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
    # The descriptors for gRPC reflection leave out the services that only the plane's own processes call.
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
            return failure.returncode  # buf or go has already printed the error
        except (EngineError, console_packages.PackagesError) as failure:
            sys.stderr.write(f"{failure}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
