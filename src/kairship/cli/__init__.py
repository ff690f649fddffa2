"""The `kairship` command.

`app` assembles it and turns expected failures into one message and an exit code; each other module is one command or a
family of them. What a command prints for people goes through `output`, which also knows `--output json`.
"""

from kairship.cli.app import main

__all__ = ["main"]
