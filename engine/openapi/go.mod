module kairship.io/engine/openapi

go 1.25.0

tool github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-openapiv2

// Only for its protos, which api/generate.py reads. No package of it is compiled: `go mod tidy` would drop this.
require github.com/bufbuild/protovalidate v1.2.2

require (
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.29.0 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/text v0.36.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260414002931-afd174a4e478 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478 // indirect
	google.golang.org/grpc v1.80.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
