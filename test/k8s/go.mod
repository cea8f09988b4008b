// Module k8s tests the manifests in deploy/k8s. It is a module of its own so that nothing
// of Kubernetes is among Mneme's dependencies.
module mneme/test/k8s

go 1.26.0

require (
	github.com/google/go-containerregistry v0.22.1
	mneme v0.0.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
)

replace mneme => ../..
