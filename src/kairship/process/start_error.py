"""The error that ends a process before it runs. This module imports nothing: every command of the CLI loads it."""


class StartError(Exception):
    """The process cannot run with these settings. The message says why and what to do."""
