"""Services and how they are called: what the entrance and the roles behind it have in common.

    calls       one request being served: who asks, and how long there is
    errors      what a caller is told when something goes wrong
    registry    which object answers which method of the protos, or which role behind
    role_server, role_channel
                how a role behind the entrance is called, and by whom: `service_tokens`, `passing`

A service is a plain object with a coroutine per method, the same behind the entrance and in a role of its own.
"""
