"""Control planes as data: turns a name, ports and a directory into certificates and process specifications.

Nothing here starts a server or calls one. `pki` writes the certificates of one control plane, `kubernetes` and
`karmada` describe its processes, and `etcd_snapshot` runs etcd's own tools on its data. The supervisor runs the
processes. A driver (`kairship.instances.drivers`) or the embedded plane decides which control planes exist.
"""

from kairship.controlplane.control_plane import ControlPlane, PlaneKind

__all__ = ["ControlPlane", "PlaneKind"]
