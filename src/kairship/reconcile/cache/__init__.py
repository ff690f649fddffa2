"""A local cache of the objects of an API server.

`list_watch` lists a collection and watches its changes, `reflector` keeps a `store` with them and calls handlers,
`indexer` finds objects by a value in them, `shapes` says which part of an object is decoded and kept.
"""
