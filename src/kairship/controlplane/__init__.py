"""Control planes as data: from a name, ports and a directory to certificates and process specifications.

Nothing here starts a process or talks to a server. ``pki`` writes the certificates of one control plane, ``kubernetes``
and ``karmada`` describe its processes, ``snapshot`` runs etcd's own tools on its data. Who runs the result is the
supervisor; who decides what exists is a driver (``kairship.instances.drivers``) or the embedded plane.
"""

from kairship.controlplane.plane import ControlPlane, PlaneKind

__all__ = ["ControlPlane", "PlaneKind"]
