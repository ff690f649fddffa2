"""What can be wrong before a process runs. Nothing is imported here: the command line knows it at every start."""


class StartError(Exception):
    """The settings cannot work; the text says why, and what to do."""
