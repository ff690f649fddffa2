"""`python -m kairship` is `kairship`."""

from kairship.cli import main

main()
