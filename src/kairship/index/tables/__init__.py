"""Tables: objects as rows of cells, as API servers print them for kubectl (`meta.k8s.io/v1 Table`).

    layout       `Layout`: the columns of a kind, and the function that prints the cells of an object
    built_in     the kinds of Kubernetes and Karmada; the cluster says which columns they have
    pods, workloads, networking, cluster
                 the cells of these kinds, with `cells` and `ages` for what they have in common
    custom       columns and cells of custom resources, from their definition (`json_path` finds the values)

Columns differ between versions of Kubernetes. Cells are printed only for columns that are known here; a cluster that
has other columns prints its tables itself.
"""

from kairship.index.tables.built_in import built_in
from kairship.index.tables.custom import of_definition
from kairship.index.tables.layout import Layout

__all__ = ["Layout", "built_in", "of_definition"]
