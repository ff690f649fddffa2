"""Tables: objects as rows of cells, in the way in which API servers print them for kubectl.

    built_in     the cells of kinds that are part of Kubernetes and Karmada; their columns are asked of the cluster
    custom       columns and cells of custom resources, out of their definition (`json_path` finds the values)
    ages         times as people read them

Columns differ between versions of Kubernetes. Cells are printed only for columns that are known here; a cluster that
has others prints its tables itself.
"""

from kairship.index.tables.built_in import built_in
from kairship.index.tables.custom import of_definition
from kairship.index.tables.layout import Layout

__all__ = ["Layout", "built_in", "of_definition"]
