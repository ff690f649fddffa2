"""Ports of the plane's processes: `allocator` chooses and stores them, `claims` keeps other running planes off them."""

from kairship.supervisor.ports.allocator import PortAllocator, is_free, taken, usable_range

__all__ = ["PortAllocator", "is_free", "taken", "usable_range"]
