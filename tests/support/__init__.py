"""What the tests share: the one plane of a run, and helpers that inject faults in front of real servers."""
