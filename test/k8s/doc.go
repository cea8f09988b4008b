// Package k8s holds the manifests in deploy/k8s to what they promise: every overlay is
// rendered as kubectl does it, decoded strictly by Kubernetes' own types, and looked at
// field by field.
//
// Invariants: nothing here needs a cluster, a network or another program.
//
// Not its job: whether Kubernetes takes them (package apply) and whether they work (node).
package k8s
