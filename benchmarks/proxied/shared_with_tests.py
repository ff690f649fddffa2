"""Programs and pods that the tests use as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tests"))

from support.answering_pods import let_pods_answer, write_log
from support.go_programs import build

__all__ = ["build", "let_pods_answer", "write_log"]
