"""Global management: identities, groups, roles, workspaces, bindings, sign-in, webhooks and audit."""
