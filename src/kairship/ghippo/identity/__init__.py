"""Identities and sign-in.

users, groups       the people and machines of the platform
passwords, lockout  password hashes and policy; the slowing down of failed attempts
sessions            sessions with rotating refresh tokens; `signing_keys` signs their short-lived session tokens
access_tokens       long-lived tokens for scripts and machines
sign_in             from a password, a device code (`device_login`) or an identity provider to a session
identity_providers  the OpenID Connect providers that are set up; `oidc` signs users in with them
directory           the log of identity changes that the entrance follows
first_run           the first administrator of a new plane
"""
