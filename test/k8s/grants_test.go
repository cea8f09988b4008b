package k8s

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What a pod may be given of Secrets, by where it finds it.
const (
	theToken   = "MNEME_TOKEN is operator.token of mneme-keys"
	theCA      = "/etc/mneme/tls/ca.crt is ca.crt of mneme-tls"
	theMaster  = "/etc/mneme/keys/master.key is master.key of mneme-keys"
	thePeers   = "/etc/mneme/peers/* is * of mneme-peers"
	theBuckets = "/etc/mneme/bucket/* is * of mneme-backup-bucket"
)

// grants are what each pod has of Secrets, and where it writes. With buckets a pod has their
// credentials in the place of the two volumes.
var grants = map[string]struct{ secrets, writes []string }{
	"backup":        {[]string{theCA, theToken}, []string{"/var/backups/keys", "/var/backups/log"}},
	"backup-full":   {[]string{theCA, theToken}, []string{"/var/backups/keys", "/var/backups/log"}},
	"backup-prune":  {nil, []string{"/var/backups/keys", "/var/backups/log"}},
	"backup-verify": {nil, nil},
	"backup-older":  {nil, nil},
	"backup-drill":  {[]string{theMaster}, []string{"/var/scratch"}},
	"declared":      {[]string{theCA, theToken}, nil},
	"test":          {[]string{theCA, theToken}, nil},
	"to-one":        {[]string{theMaster}, []string{"/var/lib/mneme"}},
	"to-three":      {[]string{theMaster, thePeers}, []string{"/var/lib/mneme"}},
}

// granted finds a pod's name in the table, in the name of what makes the pod.
var granted = regexp.MustCompile(` mneme-(backup-[a-z]+|backup|declared|test|to-[a-z]+)(-[0-9a-z]{10})?$`)

// name is the pod's in grants.
func (p clientPod) name(t *testing.T) string {
	t.Helper()
	found := granted.FindStringSubmatch(p.from)
	if found == nil {
		t.Fatalf("%s is in no table", p.from)
	}
	return found[1]
}

// everyPod are the pods beside the nodes: of clients, of backups and of migrations.
func everyPod(t *testing.T) []clientPod {
	t.Helper()
	pods := append(clientPods(t), migratePods(t)...)
	for _, by := range backupPods(t) {
		pods = append(pods, slices.Collect(maps.Values(by))...)
	}
	return pods
}

// secrets are what the pod has of Secrets, in order, once for all of its containers.
func (p clientPod) secrets(t *testing.T) (out []string) {
	t.Helper()
	for _, c := range p.containers() {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				out = append(out, "variables are * of "+from.SecretRef.Name)
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				out = append(out, e.Name+" is "+e.ValueFrom.SecretKeyRef.Key+" of "+e.ValueFrom.SecretKeyRef.Name)
			}
		}
	}
	for _, v := range p.spec.Volumes {
		if v.Secret != nil {
			t.Errorf("%s is not projected", v.Name)
		}
		if v.Projected == nil {
			continue
		}
		if mode := v.Projected.DefaultMode; mode == nil || *mode != 0o400 {
			t.Errorf("%s is not for its user alone: %+v", v.Name, v.Projected)
		}
		at := "nowhere"
		for _, c := range p.containers() {
			for _, m := range c.VolumeMounts {
				if m.Name == v.Name {
					at = m.MountPath
				}
			}
		}
		for _, source := range v.Projected.Sources {
			if source.Secret == nil {
				t.Errorf("%s has another source: %+v", v.Name, source)
				continue
			}
			if source.Secret.Items == nil {
				out = append(out, at+"/* is * of "+source.Secret.Name)
			}
			for _, item := range source.Secret.Items {
				if item.Mode != nil {
					t.Errorf("%s has a mode of its own: %o", item.Key, *item.Mode)
				}
				out = append(out, at+"/"+item.Path+" is "+item.Key+" of "+source.Secret.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// writes are the mounts that the pod may write to, in order.
func (p clientPod) writes() (out []string) {
	for _, c := range p.containers() {
		for _, m := range c.VolumeMounts {
			if !m.ReadOnly {
				out = append(out, m.MountPath)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// variable is a plain variable of the pod's first container, or of a ConfigMap that it takes all of.
func (p clientPod) variable(name string) (value string) {
	c := p.containers()[0]
	for _, from := range c.EnvFrom {
		for _, m := range all[*corev1.ConfigMap](rendered{objects: p.objects}) {
			if from.ConfigMapRef != nil && m.Name == from.ConfigMapRef.Name {
				value = m.Data[name]
			}
		}
	}
	for _, e := range c.Env {
		if e.Name == name {
			value = e.Value
		}
	}
	return value
}

// claimOf is the claim that a path of the pod lies in; "" = in none.
func (p clientPod) claimOf(path string) string {
	mounts := slices.DeleteFunc(slices.Clone(p.containers()[0].VolumeMounts), func(m corev1.VolumeMount) bool {
		return path != m.MountPath && !strings.HasPrefix(path, m.MountPath+"/")
	})
	if len(mounts) == 0 {
		return ""
	}
	in := slices.MaxFunc(mounts, func(a, b corev1.VolumeMount) int { return cmp.Compare(len(a.MountPath), len(b.MountPath)) })
	for _, v := range p.spec.Volumes {
		if v.Name == in.Name && v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

func TestPodsHaveTheSecretsThatTheyNeed(t *testing.T) {
	seen := map[string]int{}
	for _, p := range everyPod(t) {
		t.Run(p.from, func(t *testing.T) {
			name := p.name(t)
			seen[name]++
			want, writes := slices.Clone(grants[name].secrets), slices.Clone(grants[name].writes)
			if strings.Contains(p.from, "bucket") {
				want = append(want, theBuckets)
				writes = slices.DeleteFunc(writes, func(at string) bool { return strings.HasPrefix(at, "/var/backups/") })
			}
			slices.Sort(want)
			got := p.secrets(t)
			if !slices.Equal(got, want) {
				t.Errorf("it has the secrets\n%q, want\n%q", got, want)
			}
			of := strings.Join(got, "\n") + "\n"
			whole := strings.Contains(of, "* of mneme-keys\n")
			opens, asks := whole || strings.Contains(of, "master.key of mneme-keys\n"), whole || strings.Contains(of, "operator.token of mneme-keys\n")
			if opens && asks {
				t.Error("one pod has both the token and the master key")
			}
			if source := p.variable("MNEME_MASTER_KEY"); opens != (source == "file:/etc/mneme/keys/master.key") || !opens && source != "" {
				t.Errorf("it looks for the master key at %q", source)
			}
			if got := p.writes(); !slices.Equal(got, writes) {
				t.Errorf("it writes to %q, want %q", got, writes)
			}
		})
	}
	for name := range grants {
		if seen[name] == 0 {
			t.Errorf("there is no pod %s", name)
		}
	}
}

// Who loses a volume or a bucket loses the log or its keys, and who reads one reads nothing.
func TestKeysLieApartFromTheLog(t *testing.T) {
	for _, p := range everyPod(t) {
		name := p.name(t)
		log, keys := p.variable("BACKUP_TO"), p.variable("BACKUP_KEYS_TO")
		switch {
		case strings.Contains(p.from, "bucket"):
			to, err := url.Parse(log)
			if err != nil {
				t.Fatal(err)
			}
			keysTo, err := url.Parse(keys)
			if err != nil {
				t.Fatal(err)
			}
			if to.Scheme != "s3" || keysTo.Scheme != "s3" || to.Host == "" || keysTo.Host == "" || to.Host == keysTo.Host || to.User.Username() == keysTo.User.Username() {
				t.Errorf("%s: the log goes to %s, the keys to %s", p.from, log, keys)
			}
			if at := p.variable("AWS_SHARED_CREDENTIALS_FILE"); at != "/etc/mneme/bucket/credentials" {
				t.Errorf("%s: its credentials are at %q", p.from, at)
			}
		case strings.HasPrefix(name, "backup"), name == "to-one":
			if name == "to-one" {
				log, keys = p.after("--from"), p.after("--keys-from")
			}
			if got := [2]string{p.claimOf(log), p.claimOf(keys)}; got != [2]string{"mneme-backup-log", "mneme-backup-keys"} {
				t.Errorf("%s: the log %s and the keys %s are in the claims %q", p.from, log, keys, got)
			}
		}
	}
}

// after is the argument that follows another one.
func (p clientPod) after(flag string) string {
	args := p.spec.Containers[0].Args
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// An uninstalled release leaves the backups.
func TestChartKeepsClaims(t *testing.T) {
	installed, hooks := chartObjects(t, release{name: "mneme", values: "backup: {enabled: true}\n"})
	claims := all[*corev1.PersistentVolumeClaim](rendered{objects: append(installed, hooks...)})
	if len(claims) != 2 {
		t.Errorf("%d claims", len(claims))
	}
	for _, c := range claims {
		if got := c.Annotations["helm.sh/resource-policy"]; got != "keep" {
			t.Errorf("%s goes with the release: %q", c.Name, got)
		}
	}
}

// The volume of the log holds it three times, and that of a drill what a node's does
// (docs/operate/install.md).
func TestBackupVolumesAreLargeEnough(t *testing.T) {
	node := one[*appsv1.StatefulSet](t, overlay(t, "team")).Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage()
	for from, pods := range backupPods(t) {
		drill := pods["backup-drill"]
		scratch := slices.DeleteFunc(slices.Clone(drill.spec.Volumes), func(v corev1.Volume) bool { return v.Ephemeral == nil })
		if len(scratch) != 1 || scratch[0].Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests.Storage().Cmp(*node) < 0 {
			t.Errorf("%s: a drill has less room than a node: %+v", from, scratch)
		}
		claims := map[string]int64{}
		for _, c := range all[*corev1.PersistentVolumeClaim](rendered{objects: drill.objects}) {
			claims[c.Name] = c.Spec.Resources.Requests.Storage().Value()
		}
		want := map[string]int64{"mneme-backup-log": 2 * node.Value(), "mneme-backup-keys": 1 << 30}
		if strings.Contains(from, "bucket") {
			want = map[string]int64{}
		}
		if !maps.Equal(claims, want) {
			t.Errorf("%s claims %v, want %v", from, claims, want)
		}
	}
}

// A pod that opens what a node opens collects garbage before its limit ends it.
func TestMemoryLimitOfGoIsBelowThePods(t *testing.T) {
	for _, p := range everyPod(t) {
		limit, opens := p.variable("GOMEMLIMIT"), slices.Contains(grants[p.name(t)].secrets, theMaster)
		if limit == "" && !opens {
			continue
		}
		of, err := resource.ParseQuantity(strings.TrimSuffix(limit, "B"))
		if err != nil {
			t.Errorf("%s: GOMEMLIMIT %q: %v", p.from, limit, err)
			continue
		}
		if memory := p.spec.Containers[0].Resources.Limits.Memory(); 100*of.Value() > 91*memory.Value() || 100*of.Value() < 80*memory.Value() { // nine tenths or somewhat less
			t.Errorf("%s: GOMEMLIMIT is %s, and the limit %s", p.from, limit, memory)
		}
	}
}
