"""Global management (ghippo): users, groups, sign-in, roles, workspaces, bindings, webhooks and the audit log.

    process         the process `kairship ghippo` and its wiring; `settings` configures it
    leader_duties   the tasks of the leading replica; `cleanup` is one of them
    services        one class per service of the protos
    identity        users, groups, sessions, access tokens, and every way to sign in
    tenancy         folders, workspaces, roles, bindings, and the effective bindings that follow from them
    delivery        sends effective bindings to webhooks
    audit           the audit log, a chain of authenticated entries
    database        tables, migrations, and transactions in threads

`identity`, `tenancy` and `delivery` consist mostly of functions of a connection, which run in a transaction of
`Database`. Databases and argon2 have threads of their own, so nothing blocks the event loop. Every secret is stored as
a hash, or sealed with a key outside the database (`sealing`).
"""
