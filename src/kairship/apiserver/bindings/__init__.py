"""How bindings come from global management: a `webhook` takes deliveries, signed with the `webhook_secrets`.

`kairship.access.delivery` has the protocol, and stores the bindings.
"""
