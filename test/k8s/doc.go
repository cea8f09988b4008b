// Package k8s holds the manifests in deploy/k8s and the chart in deploy/helm to what they
// promise: every overlay is rendered as kubectl does it, and the chart at equal values as
// helm does it, decoded strictly by Kubernetes' own types, and looked at field by field.
// The two are equal object by object, but for what equal_test.go lists.
//
// Invariants: nothing here needs a cluster or a network. What pods of clients call is
// called, on a node that listens on loopback.
//
// Not its job: whether Kubernetes takes them (package apply) and whether they work (node).
package k8s
