module kairship.io/benchmarks/relay

go 1.26.0
