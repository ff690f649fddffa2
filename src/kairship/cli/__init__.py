"""The `kairship` command.

`app` assembles the command and turns expected errors into a message and an exit code, which `failure` lists. `output`
and `progress` print results and progress, `completion` completes names in the shell, `addresses` has an option that
several commands share. `account` has the commands of a user who signs in to a plane. Each other module is one command
or a group of commands.
"""

from kairship.cli.app import main

__all__ = ["main"]
