"""HTTP to one API server.

transport  pools of connections, deadlines, and typed errors
upgrade    connections that become WebSocket or SPDY: exec, attach, port-forward
tls        TLS contexts from certificates in memory
sockets    sockets that detect a peer that is gone
held_bytes bounds of the memory in which unfinished replies are kept
addresses  the rule to which addresses a client may connect
"""
