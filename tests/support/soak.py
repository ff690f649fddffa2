"""Whether this is the long form of the tests (`make soak`): everything where an ordinary run takes a sample."""

import os

SOAK = bool(os.environ.get("KAIRSHIP_SOAK"))
