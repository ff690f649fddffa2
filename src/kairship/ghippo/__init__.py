"""Global management: identities, groups, roles, workspaces, bindings, sign-in, webhooks and audit.

    database      tables, migrations, and transactions in threads
    users, groups, roles, folders, workspaces, bindings, registry
                  the domain: functions of a connection, run in a transaction
    effective     bindings resolved into what instances and namespaces are told; `webhooks` and `deliverer` tell it
    sign_in       from a password, a token, a device or an identity provider (`oidc`) to a session
    directory     who there is, for the entrance to follow
    audit         the chain of what people did
    services      one class per service of the protos
    escalation    nobody gives away more than they have

Nothing of it blocks the event loop: databases and argon2 have threads of their own. What is secret is a hash, or sealed
with a key outside the database (`sealing`).
"""
