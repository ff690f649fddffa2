"""gRPC in front of the chain, on a port of its own.

server       the methods of the API
health       gRPC's health service
reflection   gRPC's reflection service
"""
