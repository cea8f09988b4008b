package k8s

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// name labels every pod of Mneme, and selects them.
const name = "app.kubernetes.io/name"

func TestStatefulSet(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		set := one[*appsv1.StatefulSet](t, r)
		spec := set.Spec
		if spec.PodManagementPolicy != appsv1.ParallelPodManagement {
			t.Error("pods start one after the other: a quorum would wait for ever")
		}
		if spec.MinReadySeconds == 0 || spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || *spec.UpdateStrategy.RollingUpdate.Partition != 0 {
			t.Errorf("updates: %+v, %d s", spec.UpdateStrategy, spec.MinReadySeconds)
		}
		keep := spec.PersistentVolumeClaimRetentionPolicy
		if keep == nil || keep.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType || keep.WhenScaled != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
			t.Errorf("volumes are not kept: %+v", keep)
		}
		if spec.ServiceName != "mneme-peers" || spec.Selector.MatchLabels[name] != "mneme" || spec.Template.Labels[name] != "mneme" {
			t.Errorf("service %s, selector %v", spec.ServiceName, spec.Selector.MatchLabels)
		}
		if len(spec.VolumeClaimTemplates) != 1 || !slices.Equal(spec.VolumeClaimTemplates[0].Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}) ||
			spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().IsZero() {
			t.Errorf("claims: %+v", spec.VolumeClaimTemplates)
		}
	})
}

func TestServices(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		services := map[string]*corev1.Service{}
		for _, s := range all[*corev1.Service](r) {
			services[s.Name] = s
			if s.Spec.Selector[name] != "mneme" {
				t.Errorf("%s selects %v", s.Name, s.Spec.Selector)
			}
			for _, p := range s.Spec.Ports {
				if p.AppProtocol == nil {
					t.Errorf("%s %s does not say its protocol", s.Name, p.Name)
				}
				if !slices.ContainsFunc(r.memnode(t).Ports, func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.String() && c.ContainerPort == p.Port }) {
					t.Errorf("%s %s leads to no port of memnode", s.Name, p.Name)
				}
			}
		}
		if len(services) != 2 {
			t.Fatalf("services: %v", services)
		}
		if peers := services["mneme-peers"].Spec; peers.ClusterIP != corev1.ClusterIPNone || !peers.PublishNotReadyAddresses {
			t.Error("pods do not find each other before they are ready")
		}
		if clients := services["mneme"].Spec; clients.PublishNotReadyAddresses || clients.ClusterIP == corev1.ClusterIPNone {
			t.Error("clients are led to pods that are not ready")
		}
	})
}

// What the profile "restricted" asks for is checked by the API server in package apply;
// this is what goes beyond it.
func TestPodsMayDoLittle(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		pod, c := r.pod(t), r.memnode(t)
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || pod.ServiceAccountName != "mneme" {
			t.Error("pods have a token of Kubernetes")
		}
		if account := one[*corev1.ServiceAccount](t, r); account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
			t.Error("the account gives its token to pods")
		}
		if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
			t.Error("pods have variables of services")
		}
		who := pod.SecurityContext
		if !*who.RunAsNonRoot || *who.RunAsUser == 0 || *who.RunAsGroup == 0 || *who.FSGroup != *who.RunAsGroup || *who.FSGroupChangePolicy != corev1.FSGroupChangeOnRootMismatch || who.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("pod: %+v", who)
		}
		may := c.SecurityContext
		if *may.AllowPrivilegeEscalation || !*may.ReadOnlyRootFilesystem || !slices.Equal(may.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(may.Capabilities.Add) > 0 {
			t.Errorf("container: %+v", may)
		}
		if pod.HostNetwork || pod.HostPID || pod.HostIPC || slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 }) {
			t.Error("pods share something of the machine")
		}
		if c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("resources: %+v", c.Resources)
		}
		if !c.Resources.Limits.Cpu().IsZero() {
			t.Error("processors are limited: what nobody else needs may be used")
		}
	})
}

func TestProbesWaitForNobodyElse(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		c := r.memnode(t)
		for what, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe} {
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != "/livez" || probe.HTTPGet.Port.String() != "health" {
				t.Errorf("%s probe: %+v", what, probe)
			}
		}
		if p := c.ReadinessProbe; p == nil || p.HTTPGet == nil || p.HTTPGet.Path != "/readyz" || p.HTTPGet.Port.String() != "health" {
			t.Errorf("readiness probe: %+v", p)
		}
		if budget := c.StartupProbe.PeriodSeconds * c.StartupProbe.FailureThreshold; budget < 600 {
			t.Errorf("%d s until a start counts as failed", budget)
		}
		if r.env(t, "MNEME_HEALTH_ADDR") != "0.0.0.0:8788" {
			t.Error("nobody answers probes in clear")
		}
	})
}

func TestPodsEndInTime(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		pod, c := r.pod(t), r.memnode(t)
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil {
			t.Fatal("a pod ends before the service has forgotten it")
		}
		drain := seconds(t, r.env(t, "MNEME_DRAIN_TIMEOUT"))
		if grace := *pod.TerminationGracePeriodSeconds; grace < 2*drain || c.Lifecycle.PreStop.Sleep.Seconds+drain >= grace {
			t.Errorf("%d s, of which draining takes %d and the pause before %d", grace, drain, c.Lifecycle.PreStop.Sleep.Seconds)
		}
	})
}

func TestPodsAreSpread(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		pod := r.pod(t)
		var by []string
		for _, s := range pod.TopologySpreadConstraints {
			by = append(by, s.TopologyKey)
			if s.LabelSelector.MatchLabels[name] != "mneme" || !slices.Equal(s.MatchLabelKeys, []string{"controller-revision-hash"}) || s.MaxSkew != 1 {
				t.Errorf("spread: %+v", s)
			}
			want := corev1.ScheduleAnyway
			if r.name == "ha" {
				want = corev1.DoNotSchedule
			}
			if s.WhenUnsatisfiable != want {
				t.Errorf("spread by %s: %s, want %s", s.TopologyKey, s.WhenUnsatisfiable, want)
			}
		}
		if !slices.Equal(by, []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"}) {
			t.Errorf("spread by %v", by)
		}
		if apart := pod.Affinity.PodAntiAffinity; len(apart.RequiredDuringSchedulingIgnoredDuringExecution) > 0 || len(apart.PreferredDuringSchedulingIgnoredDuringExecution) != 1 ||
			!slices.Equal(apart.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.MatchLabelKeys, []string{"controller-revision-hash"}) {
			t.Errorf("apart: %+v", apart)
		}
	})
}

func TestDisruptionBudget(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		budgets := all[*policyv1.PodDisruptionBudget](r)
		if overlays[r.name] == 1 {
			if len(budgets) > 0 {
				t.Error("a single pod could never be evicted")
			}
			return
		}
		spec := one[*policyv1.PodDisruptionBudget](t, r).Spec
		if spec.MaxUnavailable.IntValue() != 1 || *spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow || spec.Selector.MatchLabels[name] != "mneme" {
			t.Errorf("budget: %+v", spec)
		}
	})
}

func TestSecretsAreFilesForNobodyElse(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		pod, c := r.pod(t), r.memnode(t)
		mounted := map[string]corev1.VolumeMount{}
		for _, m := range c.VolumeMounts {
			mounted[m.Name] = m
			if m.SubPath != "" || m.SubPathExpr != "" {
				t.Errorf("%s is mounted by a sub path: what is renewed would not arrive", m.Name)
			}
		}
		for _, v := range pod.Volumes {
			if v.Secret != nil {
				t.Errorf("%s is not projected", v.Name)
			}
			if v.Projected == nil {
				continue
			}
			if *v.Projected.DefaultMode != 0o400 || !mounted[v.Name].ReadOnly {
				t.Errorf("%s has mode %o", v.Name, *v.Projected.DefaultMode)
			}
		}
		for _, e := range c.Env {
			if strings.Contains(e.Name, "TOKEN") && (e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil) {
				t.Errorf("%s stands in the manifest", e.Name)
			}
		}
		if got := r.env(t, "MNEME_MASTER_KEY"); got != "file:/etc/mneme/keys/master.key" {
			t.Errorf("the master key lies beside the data: %q", got)
		}
	})
}

func TestPodsStartWithoutASecretOfTraces(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		c := r.memnode(t)
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "MNEME_TRACES_HEADERS" })
		if r.env(t, "MNEME_TRACES_HEADERS") != "secret mneme-traces headers" {
			t.Fatalf("headers of traces are %q", r.env(t, "MNEME_TRACES_HEADERS"))
		}
		if optional := c.Env[i].ValueFrom.SecretKeyRef.Optional; optional == nil || !*optional {
			t.Error("no pod starts without a Secret that few have")
		}
	})
}

func TestMemctlInThePodAsksTheNodesSocket(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		c, dir := r.memnode(t), r.env(t, "MNEME_DATA_DIR")
		if got := r.env(t, "MNEME_ADDR"); got != "unix://"+dir+"/admin.sock" || r.env(t, "MNEME_ADMIN_SOCKET") != "" {
			t.Errorf("memctl asks %q, and the data is in %s", got, dir)
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "data" && m.MountPath == dir }) {
			t.Errorf("%s is not in the volume", dir)
		}
	})
}

// Nothing that is known of the number of replicas stands in a pod, or scaling would
// restart all of them.
func TestScalingRestartsNobody(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		if overlays[r.name] == 1 {
			if id := r.env(t, "MNEME_NODE_ID"); id != "" {
				t.Errorf("a node on its own has the id %q", id)
			}
			return
		}
		if got := r.env(t, "MNEME_NODE_ID"); got != "field metadata.name" {
			t.Errorf("node id: %q", got)
		}
		if got := strings.Split(r.env(t, "MNEME_JOIN"), ","); len(got) != 3 || got[2] != "mneme-2.$(PEERS_DOMAIN):8800" {
			t.Errorf("join: %v", got)
		}
		if got := r.env(t, "MNEME_PEER_ADVERTISE"); got != "$(MNEME_NODE_ID).$(PEERS_DOMAIN):8800" {
			t.Errorf("advertised: %q", got)
		}
		if got := r.env(t, "PEERS_DOMAIN"); got != "mneme-peers.$(POD_NAMESPACE).svc.$(CLUSTER_DOMAIN)" {
			t.Errorf("domain: %q", got)
		}
		// A variable takes the values of those before it.
		var names []string
		for _, e := range r.memnode(t).Env {
			for _, used := range []string{"MNEME_NODE_ID", "PEERS_DOMAIN", "POD_NAMESPACE", "CLUSTER_DOMAIN"} {
				if strings.Contains(e.Value, "$("+used+")") && !slices.Contains(names, used) {
					t.Errorf("%s uses %s, which comes behind it", e.Name, used)
				}
			}
			names = append(names, e.Name)
		}
	})
}

func TestNetworkPolicies(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		policies := map[string]networkingv1.NetworkPolicySpec{}
		for _, p := range all[*networkingv1.NetworkPolicy](r) {
			policies[p.Name] = p.Spec
			if p.Spec.PodSelector.MatchLabels[name] != "mneme" {
				t.Errorf("%s is for %v", p.Name, p.Spec.PodSelector)
			}
			for _, rule := range p.Spec.Ingress {
				if len(rule.From) == 0 || len(rule.Ports) == 0 {
					t.Errorf("%s lets everybody in, or everywhere", p.Name)
				}
			}
		}
		ports := func(policy string) (out []string) {
			for _, rule := range policies[policy].Ingress {
				for _, p := range rule.Ports {
					out = append(out, p.Port.String())
				}
			}
			return out
		}
		own := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{name: "mneme"}}}}
		clients, peers := []string{"https", "nats"}, []string{"peer", "route"}
		if r.name == "external-nats" {
			clients, peers = clients[:1], peers[:1]
		}
		if !slices.Equal(ports("mneme-clients"), clients) || !slices.Equal(ports("mneme-metrics"), []string{"https"}) {
			t.Errorf("clients reach %v, metrics are at %v", ports("mneme-clients"), ports("mneme-metrics"))
		}
		base := policies["mneme"]
		if len(base.Ingress) > 0 || !slices.Equal(base.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}) || len(base.Egress) != 1 {
			t.Errorf("what is not allowed is not refused: %+v", base)
		}
		if overlays[r.name] == 1 {
			return
		}
		if !slices.Equal(ports("mneme-peers"), peers) || !slices.EqualFunc(policies["mneme-peers"].Ingress[0].From, own, func(a, b networkingv1.NetworkPolicyPeer) bool {
			return a.NamespaceSelector == nil && a.IPBlock == nil && a.PodSelector.MatchLabels[name] == b.PodSelector.MatchLabels[name]
		}) {
			t.Errorf("peers: %+v", policies["mneme-peers"])
		}
	})
}

func TestExternalLogHasNoServerHere(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		if r.name != "external-nats" {
			return
		}
		for _, gone := range []string{"MNEME_ROUTE_ADDR", "MNEME_ROUTE_ADVERTISE", "MNEME_NATS_ADDR"} {
			if got := r.env(t, gone); got != "" {
				t.Errorf("%s is %q", gone, got)
			}
		}
		if !strings.HasPrefix(r.env(t, "MNEME_NATS_URL"), "tls://") || r.env(t, "MNEME_NATS_MONITOR") == "" {
			t.Errorf("settings: %v", r.settings)
		}
	})
}
