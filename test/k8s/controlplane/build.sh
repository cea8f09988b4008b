#!/usr/bin/env bash
# Builds the programs of a Kubernetes control plane and node, as go.mod pins them, into
# the folder $1. What is there already is kept; --node adds what only a node needs.
set -euo pipefail
out=${1:?the folder to build into}
cd "$(dirname "${BASH_SOURCE[0]}")"
out=$(mkdir -p "$out" && cd "$out" && pwd)

version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' go.mod)
stamp="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/client-go/pkg/version.gitVersion=$version"

build() { # build NAME PACKAGE
	local kept=$out/.$1.from from
	from="$(go env GOVERSION) $(cat go.mod go.sum "${@:3}" | sha256sum | cut -c1-16) $2"
	if [ -x "$out/$1" ] && [ "$(cat "$kept" 2>/dev/null)" = "$from" ]; then
		return
	fi
	echo "building $1" >&2
	CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags="-s -w $stamp" -o "$out/$1" "$2"
	echo "$from" > "$kept"
}

build etcd ./etcd etcd/main.go
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kubectl k8s.io/kubernetes/cmd/kubectl
if [ "${2:-}" = --node ]; then
	build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
	build kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
	build kubelet k8s.io/kubernetes/cmd/kubelet
	build kube-proxy k8s.io/kubernetes/cmd/kube-proxy
	build coredns ./coredns coredns/main.go
	build pause ./pause pause/main.go
	build bridge github.com/containernetworking/plugins/plugins/main/bridge
	build host-local github.com/containernetworking/plugins/plugins/ipam/host-local
	build loopback github.com/containernetworking/plugins/plugins/main/loopback
fi
