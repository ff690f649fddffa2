"""What operations work with, whatever the kind of the objects is."""

from dataclasses import dataclass

from kairship.apiserver.services.instance_clients import InstanceClients
from kairship.apiserver.services.resources.reader import Reader, Writes
from kairship.reconcile import Clock


@dataclass(frozen=True)
class ObjectAccess:
    """Access to the objects of all instances. One for the whole process, shared by all operations."""

    reader: Reader
    """Answers reads. What is read in order to be changed is read from the instance itself instead."""
    writes: Writes
    """Is told of every write, so that the caller's next read includes it."""
    clients: InstanceClients
    clock: Clock
