package k8s

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"
)

func TestBadValuesAreRefused(t *testing.T) {
	externally := valuesOf(t, "external-nats") // right but for what a case replaces
	for what, c := range map[string]struct{ values, says string }{
		"a typo":                            {"replicsa: 3", "additional properties 'replicsa' not allowed"},
		"a typo further in":                 {"image: {tagg: dev}", "additional properties 'tagg' not allowed"},
		"a word for a number":               {"replicas: three", "at '/replicas': value must be one of 1, 3, 5"},
		"a number in quotes":                {`replicas: "3"`, "at '/replicas': value must be one of 1, 3, 5"},
		"no number of replicas":             {"replicas: null", "missing property 'replicas'"},
		"two replicas":                      {"replicas: 2", "at '/replicas': value must be one of 1, 3, 5"},
		"four replicas":                     {"replicas: 4", "at '/replicas': value must be one of 1, 3, 5"},
		"no replicas":                       {"replicas: 0", "at '/replicas': value must be one of 1, 3, 5"},
		"more founders than nodes":          {"founders: 5", "at '/founders'"},
		"the latest image":                  {"image: {tag: latest}", "at '/image/tag'"},
		"a digest that is none":             {"image: {digest: sha256:ab}", "at '/image/digest'"},
		"an unknown setting":                {"settings: {MNEME_LOGLEVEL: debug}", "MNEME_LOGLEVEL"},
		"a setting that is no word":         {"settings: {MNEME_SHARDS: 2}", "at '/settings/MNEME_SHARDS': got number, want string"},
		"a setting that is the chart's":     {"settings: {MNEME_AUTH: \"off\"}", "MNEME_AUTH"},
		"a secret among the settings":       {"settings: {MNEME_AUTH_TOKEN: abc}", "MNEME_AUTH_TOKEN"},
		"no Secret of the keys":             {"secrets: {keys: null}", "missing property 'keys'"},
		"no Secrets":                        {"secrets: null", "missing property 'secrets'"},
		"a Secret's name that is none":      {"secrets: {tls: My Secret}", "at '/secrets/tls'"},
		"a log that is nowhere":             {"nats: {mode: external}", "at '/nats/urls': minItems"},
		"a log without its Secret":          {strings.Replace(externally, "secret: mneme-nats", `secret: ""`, 1), "at '/nats/secret': minLength"},
		"a log without proof that it syncs": {strings.NewReplacer("monitors:", "monitors: []", "    - http://", "    # ").Replace(externally), "at '/nats/monitors': minItems"},
		"a log that is reached in no way":   {strings.Replace(externally, "- tls://", "- http://", 1), "at '/nats/urls/0'"},
		"two logs":                          {strings.Replace(externally, "mode: external", "mode: embedded", 1), "at '/nats/"},
		"no limit of memory":                {"resources: {limits: {memory: null}}", "missing property 'memory'"},
		"a size that is none":               {"storage: {size: 20 GB}", "at '/storage/size'"},
		"pods spread in no way":             {"spread: Maybe", "at '/spread'"},
		"a switch that is a word":           {`podMonitor: {enabled: "yes"}`, "at '/podMonitor/enabled': got string, want boolean"},
		"a label that is a number":          {"podMonitor: {labels: {tier: 1}}", "at '/podMonitor/labels/tier': got number, want string"},
		"a label that is the chart's":       {"podMonitor: {labels: {app.kubernetes.io/name: a}}", "invalid propertyName 'app.kubernetes.io/name'"},
		"backups at no time":                {"backup: {schedules: {full: monthly}}", "at '/backup/schedules/full'"},
		"backups that are pruned at once":   {"backup: {keepSince: 0d}", "at '/backup/keepSince'"},
		"backups without a place of keys":   {"backup: {buckets: {to: s3://a/b, secret: c}}", "at '/backup/buckets/keysTo': minLength"},
		"keys of no backups":                {"backup: {buckets: {keysTo: s3://a/b}}", "at '/backup/buckets/keysTo'"},
		"credentials in a bucket's name":    {"backup: {buckets: {to: \"s3://id:secret@a\", keysTo: s3://b, secret: c}}", "at '/backup/buckets/to'"},
		"credentials among the variables":   {"backup: {buckets: {to: s3://a, keysTo: s3://b, secret: c, env: {AWS_SECRET_ACCESS_KEY: abc}}}", "AWS_SECRET_ACCESS_KEY"},
		"a setting among the variables":     {"extraEnv: [{name: MNEME_SHARDS, value: \"2\"}]", "at '/extraEnv/0/name'"},
		"a variable of nothing":             {"extraEnv: [{name: OPENAI_API_KEY}]", "at '/extraEnv/0'"},
		"a way to everywhere":               {"extraEgress: [{}]", "at '/extraEgress/0'"},
		"the chart's own annotation":        {"podAnnotations: {checksum/settings: x}", "invalid propertyName 'checksum/settings'"},
		"fewer certificates than pods":      {"{replicas: 5, founders: 5, certManager: {enabled: true, pods: 3}}", "each pod needs a certificate"},
		"a tag in the repository":           {"image: {repository: \"reg.example/mneme:v1\"}", "at '/image/repository'"},
		"a comment for a repository":        {"image: {repository: \"#x\"}", "at '/image/repository'"},
		"lines in a bucket's name":          {"backup: {buckets: {to: \"s3://a/\\u2028x\", keysTo: s3://b, secret: c}}", "at '/backup/buckets/to'"},
		"certificates for no pod":           {"certManager: {pods: 0}", "at '/certManager/pods'"},
		"a namespace without a name":        {"declared: {namespaces: [{settings: {}}]}", "missing property 'name'"},
		"a namespace with capitals":         {"declared: {namespaces: [{name: Team}]}", "at '/declared/namespaces/0/name'"},
		"a namespace's setting in parts":    {"declared: {namespaces: [{name: a, settings: {search: {newer: off}}}]}", "at '/declared/namespaces/0/settings/search'"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := release{name: "mneme", values: c.values}.chart().Files()
			if err == nil {
				t.Fatal("they were taken")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v\ndoes not say %q", err, c.says)
			}
		})
	}
}

// open are the objects among the values that take more than their schema names, and why.
var open = map[string]string{
	"extraEnv[].valueFrom.secretKeyRef": kubernetes, "extraEnv[].valueFrom.configMapKeyRef": kubernetes, "extraEnv[].valueFrom.fieldRef": kubernetes,
	"extraEgress[].to[]": kubernetes, "extraEgress[].ports[]": kubernetes, "global": "it is Helm's",
}

const kubernetes = "Kubernetes checks it"

// A word that is misspelt is refused wherever it stands: every object of the schema has names or types of
// what is in it, and every value that there is has a schema, and must be there.
func TestSchemaIsClosed(t *testing.T) {
	var schema map[string]any
	text, err := os.ReadFile(filepath.Join(deployDir, "helm/mneme/values.schema.json"))
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if text, err = os.ReadFile(filepath.Join(deployDir, "helm/mneme/values.yaml")); err == nil {
		err = yaml.Unmarshal(text, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	looked := map[string]bool{}
	var look func(at string, s, value any)
	look = func(at string, s, value any) {
		of, _ := s.(map[string]any)
		if items, ok := of["items"]; ok {
			look(at+"[]", items, nil)
		}
		if of["type"] != "object" {
			return
		}
		looked[at] = true
		names, ok := of["properties"].(map[string]any)
		if more, closed := of["additionalProperties"]; !closed && of["propertyNames"] == nil && open[at] == "" || ok && more != false {
			t.Errorf("%s takes anything", at)
		}
		below, _ := value.(map[string]any)
		required, _ := of["required"].([]any)
		for name, one := range names {
			look(strings.TrimPrefix(at+"."+name, "."), one, below[name])
			if _, has := below[name]; has && !slices.Contains(required, any(name)) && name != "global" {
				t.Errorf("%s.%s may be null, and templates count on it", at, name)
			}
		}
		for name := range below {
			if _, has := names[name]; ok && !has {
				t.Errorf("%s.%s has no schema", at, name)
			}
		}
	}
	look("", schema, values)
	for at := range open {
		if !looked[at] {
			t.Errorf("there is no object %s", at)
		}
	}
	if len(looked) < 20 {
		t.Errorf("looked at %d objects", len(looked))
	}
}

// noFile is why the chart takes no setting that names a file.
const noFile = "it names a file, and the chart mounts none of one's own"

// heldBack are settings of memnode that the chart takes from nobody.
var heldBack = map[string]string{
	"MNEME_CONFIG":          noFile,
	"MNEME_LINGER":          "it is for laptops: a pod that ends begins again",
	"MNEME_LOCAL_MODEL":     noFile,
	"MNEME_NATS_CERT":       noFile,
	"MNEME_NATS_KEY":        noFile,
	"MNEME_NATS_NKEY":       noFile,
	"MNEME_TLS_CLIENT_CA":   noFile,
	"MNEME_TRACES_CA":       noFile,
	"MNEME_TRACES_HEADERS":  "they hold a secret: the chart takes them from one of the name RELEASE-traces",
	"MNEME_NATS_SYSTEM_URL": "it holds a password, and a ConfigMap is no place for one",
}

// The schema takes every setting that memnode knows and the chart does not set itself, and
// no other: a setting that is misspelt would end every pod.
func TestSchemaKnowsTheSettings(t *testing.T) {
	var schema struct {
		Properties struct {
			Settings struct {
				PropertyNames struct {
					Enum []string `json:"enum"`
				} `json:"propertyNames"`
			} `json:"settings"`
		} `json:"properties"`
	}
	text, err := os.ReadFile(filepath.Join(deployDir, "helm/mneme/values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var defaults struct {
		Settings map[string]string `json:"settings"`
	}
	if text, err = os.ReadFile(filepath.Join(deployDir, "helm/mneme/values.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for name := range overlays {
		r := chartOf(t, name)
		for _, e := range r.memnode(t).Env {
			own[e.Name] = true
		}
		for name := range r.settings {
			if _, ok := defaults.Settings[name]; !ok {
				own[name] = true
			}
		}
	}
	want := []string{}
	for _, name := range settings(t) {
		if name == "MNEME_NAMESPACE" {
			name = "MNEME_NAMESPACES" // the other one is memctl's
		} else if name == "MNEME_NAMESPACES" {
			continue
		}
		if !own[name] && heldBack[name] == "" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if got := schema.Properties.Settings.PropertyNames.Enum; !slices.Equal(got, want) {
		t.Errorf("the schema has the settings\n%q\nand they are\n%q", got, want)
	}
}

func TestChangedSettingRollsThePods(t *testing.T) {
	sum := func(values string) string {
		objects, _ := chartObjects(t, release{name: "mneme", values: values})
		return one[*appsv1.StatefulSet](t, rendered{objects: objects}).Spec.Template.Annotations["checksum/settings"]
	}
	before := sum("")
	if before == "" || before != sum("podMonitor: {enabled: true}") {
		t.Error("pods are rolled though no setting has changed")
	}
	for _, values := range []string{"settings: {MNEME_LOG_LEVEL: debug}", "settings: {MNEME_EMBEDDER: none}", valuesOf(t, "external-nats")} {
		if sum(values) == before {
			t.Errorf("%s rolls no pod", values)
		}
	}
}

// Two releases share no object, and select no pod of the other.
func TestReleasesAreApart(t *testing.T) {
	const values = "podMonitor: {enabled: true}\ndeclared: {namespaces: [{name: a}]}\n"
	mine, my := chartObjects(t, release{name: "mneme", values: values})
	theirs, their := chartObjects(t, release{name: "memory", values: values})
	names := map[string]bool{}
	for _, o := range append(mine, my...) {
		names[o.GetObjectKind().GroupVersionKind().Kind+" "+metadata(t, o).GetName()] = true
	}
	for _, o := range append(theirs, their...) {
		if key := o.GetObjectKind().GroupVersionKind().Kind + " " + metadata(t, o).GetName(); names[key] {
			t.Errorf("both have %s", key)
		}
		text := written(t, o)
		for _, mine := range []string{"name: mneme\n", "mneme-0.$", "mneme-keys", "mneme-tls", "mneme-peers", "mneme-settings", "mneme-declared", "mneme.mneme.svc"} {
			if strings.Contains(text, mine) {
				t.Errorf("%s of the other names %q", metadata(t, o).GetName(), mine)
			}
		}
	}
}

// Alerts and dashboards ask for the job mneme, whatever the release is called.
func TestPodsAreScrapedAsTheJobOfTheAlerts(t *testing.T) {
	objects, _ := chartObjects(t, release{name: "memory", values: "podMonitor: {enabled: true}"})
	r := rendered{objects: objects}
	labels := one[*appsv1.StatefulSet](t, r).Spec.Template.Labels
	monitor := one[*monitoringv1.PodMonitor](t, r).Spec
	relabelled := monitor.PodMetricsEndpoints[0].RelabelConfigs
	if len(relabelled) != 1 || relabelled[0].TargetLabel != "cluster" || *relabelled[0].Separator != "/" ||
		!slices.Equal(relabelled[0].SourceLabels, []monitoringv1.LabelName{"__meta_kubernetes_namespace", "__meta_kubernetes_pod_label_app_kubernetes_io_name"}) ||
		labels["app.kubernetes.io/name"] != "memory" {
		t.Errorf("the label cluster is not the namespace and the release: %+v", relabelled)
	}
	endpoint := monitor.PodMetricsEndpoints[0]
	if *endpoint.Port != "https" || *endpoint.Scheme != "https" || endpoint.Path != "/metrics" || *endpoint.TLSConfig.ServerName != "memory.mneme.svc" ||
		endpoint.TLSConfig.CA.Secret.Name != "memory-tls" || endpoint.TLSConfig.CA.Secret.Key != "ca.crt" || endpoint.TLSConfig.InsecureSkipVerify != nil ||
		endpoint.Authorization.Credentials.Name != "memory-keys" || endpoint.Authorization.Credentials.Key != "operator.token" {
		t.Errorf("it cannot be scraped: %+v", endpoint)
	}
	// Alerts look back five minutes, and some wait for one.
	if interval, err := time.ParseDuration(string(endpoint.Interval)); err != nil || interval < 10*time.Second || interval > time.Minute {
		t.Errorf("it is scraped each %s, %v", endpoint.Interval, err)
	}
	alerts, err := os.ReadFile(filepath.Join(deployDir, "observability/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if job := labels[monitor.JobLabel]; job == "" || !strings.Contains(string(alerts), `{job="`+job+`"}`) {
		t.Errorf("the job is called %q", job)
	}
	for key, value := range monitor.Selector.MatchLabels {
		if labels[key] != value {
			t.Errorf("it selects pods by %s=%s, and they have %v", key, value, labels)
		}
	}
}

// A Prometheus of kube-prometheus-stack takes up a PodMonitor by a label.
func TestPodMonitorHasLabelsOfYours(t *testing.T) {
	objects, _ := chartObjects(t, release{name: "mneme", values: `podMonitor: {enabled: true, labels: {release: kube-prometheus-stack, tier: "1"}}`})
	labels := one[*monitoringv1.PodMonitor](t, rendered{objects: objects}).Labels
	for name, value := range map[string]string{"release": "kube-prometheus-stack", "tier": "1", "app.kubernetes.io/name": "mneme", "app.kubernetes.io/part-of": "mneme"} {
		if labels[name] != value {
			t.Errorf("%s is %q", name, labels[name])
		}
	}
}

// existing answers lookup with a StatefulSet of so many replicas.
type existing int64

func (n existing) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"name": "mneme", "namespace": "mneme"}, "spec": map[string]any{"replicas": int64(n)}}}
	sets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{sets: "StatefulSetList"}, set)
	return client.Resource(sets), true, nil
}

// A number alone takes no node out of a cluster, and makes none.
func TestUpgradesThatWouldLoseNodesAreRefused(t *testing.T) {
	for _, c := range []struct {
		now    existing
		values string
		says   string
	}{
		{3, "replicas: 3", ""},
		{3, "replicas: 5", ""},
		{0, "replicas: 3", ""}, // stopped
		{1, "replicas: 1", ""},
		{5, "replicas: 3", "one after the other"},
		{4, "replicas: 3", "one after the other"}, // on the way down
		{3, "replicas: 1", "one after the other"},
		{1, "replicas: 3", "one node on its own"},
	} {
		_, err := release{name: "mneme", values: c.values, revision: 2, lookup: c.now}.chart().Files()
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%d and %s: %v", c.now, c.values, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%d and %s: %v, want %q", c.now, c.values, err, c.says)
		}
	}
}

// NOTES name the next step, by the names of this release.
func TestNotesNameTheNextStep(t *testing.T) {
	const first, keys, renew = "memctl cluster secrets --out secrets --name memory --kube-namespace mneme | kubectl create -f -",
		"memctl cluster secrets --keys-only --out secrets --name memory --kube-namespace mneme | kubectl create -f -",
		"memctl cluster secrets --renew --out secrets | kubectl apply --server-side --force-conflicts -f -"
	for values, c := range map[string]struct{ says, not []string }{
		"replicas: 3": {says: []string{first, renew}, not: []string{keys}},
		"replicas: 3\ncertManager: {enabled: true}": {says: []string{keys}, not: []string{first, renew}},
	} {
		files, err := release{name: "memory", values: values}.chart().Files()
		if err != nil {
			t.Fatal(err)
		}
		notes := files["mneme/templates/NOTES.txt"]
		for _, want := range append(c.says,
			"kubectl -n mneme rollout status statefulset/memory --timeout=5m",
			"kubectl -n mneme exec memory-0 -- memctl cluster status",
			"helm test memory -n mneme --logs",
			"https://memory.mneme.svc.cluster.local:8787",
		) {
			if !strings.Contains(notes, "\n  "+want+"\n") {
				t.Errorf("%s: the notes do not say %q:\n%s", values, want, notes)
			}
		}
		for _, bad := range c.not {
			if strings.Contains(notes, bad) {
				t.Errorf("%s: the notes say %q:\n%s", values, bad, notes)
			}
		}
	}
}

// What a provider of embeddings or a collector needs is said by values.
func TestFurtherVariablesWaysAndAnnotations(t *testing.T) {
	objects, _ := chartObjects(t, release{name: "mneme", values: `
extraEnv: [{name: OPENAI_API_KEY, valueFrom: {secretKeyRef: {name: providers, key: openai}}}]
extraEgress: [{ports: [{port: 443}]}]
podAnnotations: {example.org/team: "a"}
`})
	r := rendered{objects: objects}
	env := r.memnode(t).Env
	if last := env[len(env)-1]; last.Name != "OPENAI_API_KEY" || last.ValueFrom.SecretKeyRef.Name != "providers" {
		t.Errorf("the last variable is %+v", last)
	}
	if got := one[*appsv1.StatefulSet](t, r).Spec.Template.Annotations; got["example.org/team"] != "a" || got["checksum/settings"] == "" {
		t.Errorf("annotations %v", got)
	}
	for _, p := range all[*networkingv1.NetworkPolicy](r) {
		if p.Name == "mneme" && (len(p.Spec.Egress) != 2 || p.Spec.Egress[1].Ports[0].Port.IntValue() != 443) {
			t.Errorf("pods may reach %+v", p.Spec.Egress)
		}
	}
}
