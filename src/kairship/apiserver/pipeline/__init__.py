"""What every API call passes, whether it came over REST or gRPC.

chain     authentication, fair queue, authorisation, validation and audit, around the method of a service
metrics   the Prometheus metrics of calls and connections
tracing   the OpenTelemetry spans of calls
"""
