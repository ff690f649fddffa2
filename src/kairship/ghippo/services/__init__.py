"""The services of global management: one class per service of the protos, in a module of its own.

A method is a coroutine `(request, call)`, which raises `kairship.ghippo.errors`. The entrance has already authorised
the caller for the method; the services add only the checks that need the database, such as that callers grant no more
than they have (`tenancy.escalation`). `tenant_members` and `calls` are helpers of several services.
"""
