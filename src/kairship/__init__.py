"""Kairship: an open management plane for multi-cloud Kubernetes, built on Karmada."""

from importlib.metadata import version

__version__ = version("kairship")
