"""Requests that are forwarded to the instance, in the caller's name.

forwarding        forwards HTTP requests, and their replies piece by piece
upgrade           exec, attach and port-forward: the connection stops being HTTP
tunnel            carries the bytes of an upgraded connection in both directions
kind_scope        asks a cluster whether a kind has no namespaces
circuit_breaker   spares callers the wait for an instance or member that does not answer
late_grants       sends a request again whose right has not arrived inside yet
"""
