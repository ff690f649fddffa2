"""Services and how they are called: what the entrance and the roles behind it have in common.

    calls       one request being served: who asks, and how long there is
    errors      what a caller is told when something goes wrong
    registry    which object answers which method of the protos, or which role behind
    role_server, role_channel
                how a role behind the entrance is called, and by whom: `service_tokens`, `passing`
    own_kinds   our custom resources as services read them: from memory, never older than what was written here
    listing     sorting and pages; `selectors`, `views`, `waiting` and `refusals` are what else services share

A service is a plain object with a coroutine per method, the same behind the entrance and in a role of its own.
"""
