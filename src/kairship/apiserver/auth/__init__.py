"""Authentication and authorisation of callers. Everything is decided from memory.

authentication        the protocol `Authenticator`, and how a credential is taken out of a request
token_authenticator   finds the caller of an access token or of a session token
directory_follower    keeps the users, groups, tokens and keys of global management in memory
revocation            whether a caller who was authenticated is still valid, and whether that is known
authorisation         whether a caller may call a method of the API; the decision is `kairship.access.Authoriser`'s
impersonation         who a caller is inside an instance
token_uses            reports when access tokens were last used
"""
