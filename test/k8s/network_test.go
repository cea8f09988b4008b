package k8s

import (
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// policies are who reaches the nodes, and what they reach, by the names of the policies.
const policies = `
mneme: # nothing comes in but by the others, and names are asked for
  podSelector: {matchLabels: {app.kubernetes.io/name: mneme}}
  policyTypes: [Ingress, Egress]
  egress:
    - to:
        - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}
          podSelector: {matchLabels: {k8s-app: kube-dns}}
      ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
mneme-clients:
  podSelector: {matchLabels: {app.kubernetes.io/name: mneme}}
  policyTypes: [Ingress]
  ingress:
    - from: [{namespaceSelector: {}, podSelector: {matchLabels: {mneme-client: "true"}}}]
      ports: [{port: https}, {port: nats}]
mneme-metrics:
  podSelector: {matchLabels: {app.kubernetes.io/name: mneme}}
  policyTypes: [Ingress]
  ingress:
    - from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
      ports: [{port: https}]
mneme-peers: # of this namespace alone
  podSelector: {matchLabels: {app.kubernetes.io/name: mneme}}
  policyTypes: [Ingress, Egress]
  ingress:
    - from: [{podSelector: {matchLabels: {app.kubernetes.io/name: mneme}}}]
      ports: [{port: peer}, {port: route}]
  egress:
    - to: [{podSelector: {matchLabels: {app.kubernetes.io/name: mneme}}}]
      ports: [{port: peer}, {port: route}]
mneme-log:
  podSelector: {matchLabels: {app.kubernetes.io/name: mneme}}
  policyTypes: [Egress]
  egress:
    - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: nats}}}]
      ports: [{port: 4222}, {port: 8222}]
`

func TestNetworkPolicies(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		want := map[string]networkingv1.NetworkPolicySpec{}
		if err := yaml.UnmarshalStrict([]byte(policies), &want); err != nil {
			t.Fatal(err)
		}
		if overlays[r.name] == 1 {
			delete(want, "mneme-peers")
		}
		if r.name == "external-nats" { // there is no server of NATS here, and no routes
			want["mneme-clients"].Ingress[0].Ports = want["mneme-clients"].Ingress[0].Ports[:1]
			want["mneme-peers"].Ingress[0].Ports = want["mneme-peers"].Ingress[0].Ports[:1]
			want["mneme-peers"].Egress[0].Ports = want["mneme-peers"].Egress[0].Ports[:1]
		} else {
			delete(want, "mneme-log")
		}
		got := map[string]networkingv1.NetworkPolicySpec{}
		for _, p := range all[*networkingv1.NetworkPolicy](r) {
			got[p.Name] = p.Spec
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if diff := gocmp.Diff(want[name], got[name]); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("nobody asked for the policy %s", name)
		}
	})
}
