"""`python -m kairship.resources DIRECTORY` writes the CustomResourceDefinitions, admission policies and a README."""

import sys
from pathlib import Path

from kairship.resources.install.manifests import files


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files().items():
        (directory / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
