module kairship.io/tests/clients

go 1.26.0

require (
	github.com/go-logr/logr v1.4.3
	k8s.io/api v0.35.4
	k8s.io/apimachinery v0.35.4
	k8s.io/client-go v0.35.4
	sigs.k8s.io/controller-runtime v0.23.1
)
