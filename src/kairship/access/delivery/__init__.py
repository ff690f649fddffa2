"""Delivery of bindings from global management, seen from the receiver.

    protocol        the messages of a delivery, their signatures, and the acknowledgement
    binding_store   stores delivered bindings as `AccessBinding` objects of the global cluster

The sender is `kairship.ghippo.delivery`.
"""
