package k8s

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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
		if spec.MinReadySeconds < 10 || spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || *spec.UpdateStrategy.RollingUpdate.Partition != 0 {
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
			spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().Value() != 20<<30 { // as docs/operate/size.md has it
			t.Errorf("claims: %+v", spec.VolumeClaimTemplates)
		}
	})
}

// protocols are those of the ports. NATS, and Raft between nodes, say something before TLS begins, or bring
// their own.
var protocols = map[string]string{"https": "https", "nats": "tcp", "health": "http", "peer": "tcp", "route": "tcp"}

func TestServices(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		services := map[string]*corev1.Service{}
		for _, s := range all[*corev1.Service](r) {
			services[s.Name] = s
			if s.Spec.Selector[name] != "mneme" {
				t.Errorf("%s selects %v", s.Name, s.Spec.Selector)
			}
			for _, p := range s.Spec.Ports {
				if p.AppProtocol == nil || *p.AppProtocol != protocols[p.Name] {
					t.Errorf("%s %s does not say its protocol to a mesh", s.Name, p.Name)
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

// imageUser is the user of the image, which deploy/release makes.
const imageUser = 65532

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
		if !*who.RunAsNonRoot || *who.RunAsUser != imageUser || *who.RunAsGroup == 0 || *who.FSGroup != *who.RunAsGroup || *who.FSGroupChangePolicy != corev1.FSGroupChangeOnRootMismatch || who.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
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
		// docs/operate/size.md: the limit is twice what is asked for.
		if ask := c.Resources.Requests.Memory().Value(); c.Resources.Limits.Memory().Value() != 2*ask || r.name == "ha" && ask != 4<<30 || r.name != "ha" && ask != 1<<30 {
			t.Errorf("memory: %+v", c.Resources)
		}
		if ask := c.Resources.Requests.Cpu().MilliValue(); r.name == "ha" && ask != 1000 || r.name != "ha" && ask != 250 {
			t.Errorf("processors: %+v", c.Resources)
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
		for what, c := range map[string]struct {
			probe         *corev1.Probe
			least, most   int32 // how long it has to fail until it counts
			each, answers int32 // it asks so often at least, and waits so long for an answer
		}{
			"startup":   {c.StartupProbe, 900, 900, 2, 1},
			"liveness":  {c.LivenessProbe, 60, 120, 10, 5}, // a disk that stalls is no reason to kill
			"readiness": {c.ReadinessProbe, 5, 10, 2, 2},   // clients go elsewhere soon, and not at once
		} {
			p := c.probe
			if fails := p.PeriodSeconds * p.FailureThreshold; fails < c.least || fails > c.most || p.PeriodSeconds > c.each || max(1, p.TimeoutSeconds) < c.answers ||
				p.FailureThreshold < 3 || p.InitialDelaySeconds != 0 || p.SuccessThreshold > 1 || p.TerminationGracePeriodSeconds != nil {
				t.Errorf("%s probe counts after %d s: %+v", what, fails, p)
			}
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
		if drain < 60 || c.Lifecycle.PreStop.Sleep.Seconds < 2 {
			t.Errorf("leaders are handed over within %d s, after a pause of %d", drain, c.Lifecycle.PreStop.Sleep.Seconds)
		}
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
		apart := pod.Affinity.PodAntiAffinity
		if len(apart.RequiredDuringSchedulingIgnoredDuringExecution) > 0 || len(apart.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
			t.Fatalf("apart: %+v", apart)
		}
		if from := apart.PreferredDuringSchedulingIgnoredDuringExecution[0]; from.Weight != 100 || from.PodAffinityTerm.TopologyKey != "kubernetes.io/hostname" ||
			from.PodAffinityTerm.LabelSelector.MatchLabels[name] != "mneme" || !slices.Equal(from.PodAffinityTerm.MatchLabelKeys, []string{"controller-revision-hash"}) {
			t.Errorf("apart: %+v", from)
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
		want := []string{"/etc/mneme/tls/* is * of mneme-tls", theMaster, "MNEME_AUTH_TOKEN is operator.token of mneme-keys", "MNEME_TRACES_HEADERS is headers of mneme-traces"}
		if overlays[r.name] > 1 {
			want = append(want, thePeers)
		}
		if r.name == "external-nats" {
			want = append(want, "/etc/mneme/nats/* is * of mneme-nats")
		}
		slices.Sort(want)
		if got := (clientPod{spec: pod}).secrets(t); !slices.Equal(got, want) {
			t.Errorf("it has the secrets\n%q, want\n%q", got, want)
		}
		if got := (clientPod{spec: pod}).writes(); !slices.Equal(got, []string{"/tmp", "/var/lib/mneme"}) {
			t.Errorf("it writes to %q", got)
		}
		for _, v := range pod.Volumes {
			if v.EmptyDir != nil && (v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Value() < 16<<20 || v.EmptyDir.SizeLimit.Value() > 1<<30) {
				t.Errorf("%s takes %v of the machine's disk", v.Name, v.EmptyDir.SizeLimit)
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

// Where the pod listens is where Services and probes lead, and what it reads is where it is mounted.
func TestSettingsFitThePod(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		c, several := r.memnode(t), overlays[r.name] > 1
		ports := map[string]int32{}
		for _, p := range c.Ports {
			ports[p.Name] = p.ContainerPort
		}
		wanted := map[string]string{
			"MNEME_AUTH": "token", "MNEME_HTTP_ADDR": "0.0.0.0:8787", "MNEME_NATS_ADDR": "0.0.0.0:4222", "MNEME_HEALTH_ADDR": "0.0.0.0:8788",
			"MNEME_TLS_CERT": "/etc/mneme/tls/tls.crt", "MNEME_TLS_KEY": "/etc/mneme/tls/tls.key", "MNEME_LOG_FORMAT": "json", "MNEME_LOG_LEVEL": "info",
			"MNEME_PEER_ADDR": "", "MNEME_ROUTE_ADDR": "", "MNEME_PEER_CERTS": "", "MNEME_REPLACE_LOST": "",
		}
		listens := map[string]string{"https": "MNEME_HTTP_ADDR", "nats": "MNEME_NATS_ADDR", "health": "MNEME_HEALTH_ADDR"}
		if several {
			maps.Copy(wanted, map[string]string{"MNEME_PEER_ADDR": "0.0.0.0:8800", "MNEME_ROUTE_ADDR": "0.0.0.0:6222", "MNEME_PEER_CERTS": "/etc/mneme/peers", "MNEME_REPLACE_LOST": "true"})
			maps.Copy(listens, map[string]string{"peer": "MNEME_PEER_ADDR", "route": "MNEME_ROUTE_ADDR"})
		}
		if r.name == "external-nats" {
			wanted["MNEME_NATS_ADDR"], wanted["MNEME_ROUTE_ADDR"] = "", ""
			delete(listens, "nats")
			delete(listens, "route")
			maps.Copy(wanted, map[string]string{"MNEME_NATS_CREDS": "/etc/mneme/nats/node.creds", "MNEME_NATS_CA": "/etc/mneme/nats/ca.crt"})
		}
		for name, want := range wanted {
			if got := r.env(t, name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		for name, variable := range listens {
			if _, port, _ := strings.Cut(r.env(t, variable), ":"); port != fmt.Sprint(ports[name]) {
				t.Errorf("%s listens at %s, and the port %s is %d", variable, r.env(t, variable), name, ports[name])
			}
			delete(ports, name)
		}
		if len(ports) > 0 {
			t.Errorf("nobody listens at %v", ports)
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
