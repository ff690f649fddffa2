"""The entrance: REST and gRPC from one set of protos, with one chain of checks before every method.

`transcoding` is REST as data (which method, which message), `chain` what every call passes whatever it came by, `rest`
and `grpc_server` the two servers, `process` the process that runs them in several workers. Services are plain objects
(`registry`) and raise `errors`.
"""
