"""The kinds that services are about, described, and what is said about them beyond that."""
