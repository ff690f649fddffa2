"""The helpers that tests share: the one plane of a run, processes and clusters of a test's own, and fault injection."""
