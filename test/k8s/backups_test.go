package k8s

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// backupJobs are how often each CronJob runs, and what it calls; KEEP stands for how long
// backups are kept.
var backupJobs = map[string]struct {
	runs *regexp.Regexp
	args string
}{
	"backup":        {regexp.MustCompile(`^[0-5]?\d \* \* \* \*$`), "backup --to $(BACKUP_TO) --keys-to $(BACKUP_KEYS_TO) --without-master"},
	"backup-full":   {regexp.MustCompile(`^[0-5]?\d \d+ ([1-9]|1\d|2[0-8]) \* \*$`), "backup --to $(BACKUP_TO) --keys-to $(BACKUP_KEYS_TO) --without-master --full"},
	"backup-verify": {regexp.MustCompile(`^[0-5]?\d \d+ \* \* \*$`), "backup verify --from $(BACKUP_TO) --keys-from $(BACKUP_KEYS_TO) --newest"},
	"backup-older":  {regexp.MustCompile(`^[0-5]?\d \d+ \* \* \*$`), "backup verify --from $(BACKUP_TO) --keys-from $(BACKUP_KEYS_TO)"},
	"backup-drill":  {regexp.MustCompile(`^[0-5]?\d \d+ \* \* [0-6]$`), "backup drill --from $(BACKUP_TO) --keys-from $(BACKUP_KEYS_TO) --scratch /var/scratch"},
	"backup-prune":  {regexp.MustCompile(`^[0-5]?\d \d+ \* \* [0-6]$`), "backup prune --from $(BACKUP_TO) --keys-from $(BACKUP_KEYS_TO) --keep-since KEEP --yes"},
}

func TestBackupCronJobs(t *testing.T) {
	for from, pods := range backupPods(t) {
		var at []string
		for name, p := range pods {
			jobs := slices.DeleteFunc(all[*batchv1.CronJob](rendered{objects: p.objects}), func(job *batchv1.CronJob) bool { return job.Name != "mneme-"+name })
			if len(jobs) != 1 {
				t.Fatalf("%s: %d CronJobs", p.from, len(jobs))
			}
			job, want := jobs[0], backupJobs[name]
			spec := job.Spec
			at = append(at, spec.Schedule)
			if want.runs == nil || !want.runs.MatchString(spec.Schedule) {
				t.Errorf("%s runs at %q, want %s", p.from, spec.Schedule, want.runs)
			}
			args := slices.Clone(p.spec.Containers[0].Args)
			if i := slices.Index(args, "--keep-since"); i >= 0 && i+1 < len(args) {
				// A whole month, or there may be no full backup among those that stay.
				if days, err := strconv.Atoi(strings.TrimSuffix(args[i+1], "d")); err != nil || days < 31 {
					t.Errorf("%s keeps backups for %s", p.from, args[i+1])
				}
				args[i+1] = "KEEP"
			}
			if got := strings.Join(args, " "); got != want.args {
				t.Errorf("%s calls\n%s, want\n%s", p.from, got, want.args)
			}
			if spec.ConcurrencyPolicy != batchv1.ForbidConcurrent || *spec.TimeZone != "Etc/UTC" || *spec.FailedJobsHistoryLimit < 1 || *spec.SuccessfulJobsHistoryLimit < 1 ||
				*spec.StartingDeadlineSeconds < 600 || *spec.StartingDeadlineSeconds > 3000 || spec.Suspend != nil && *spec.Suspend {
				t.Errorf("%s: %+v", p.from, spec)
			}
			each := spec.JobTemplate.Spec // its deadline bounds a run that hangs, which would keep out all others
			if *each.ActiveDeadlineSeconds < 3600 || *each.ActiveDeadlineSeconds > 24*3600 || *each.BackoffLimit < 2 {
				t.Errorf("%s: %d s, %d times", p.from, *each.ActiveDeadlineSeconds, *each.BackoffLimit)
			}
			failsOnceForAll(t, each, 2, 4, 7)
			if job.Labels["app.kubernetes.io/component"] != "backup" || p.meta.Labels["app.kubernetes.io/component"] != "backup" || p.meta.Labels["app.kubernetes.io/part-of"] != "mneme" {
				t.Errorf("%s: labels %v, its pods' %v", p.from, job.Labels, p.meta.Labels)
			}
		}
		slices.Sort(at)
		if len(slices.Compact(at)) != len(backupJobs) {
			t.Errorf("%s: several begin at once: %q", from, at)
		}
	}
}

// failsOnceForAll wants a Job that does not count pods that Kubernetes took away, and does not
// try again what ended with one of the codes.
func failsOnceForAll(t *testing.T, job batchv1.JobSpec, codes ...int32) {
	t.Helper()
	want := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
		{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: &job.Template.Spec.Containers[0].Name, Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: codes}},
	}}
	if diff := gocmp.Diff(want, job.PodFailurePolicy); diff != "" {
		t.Errorf("a mistake is tried again, or a disruption counts as one:\n%s", diff)
	}
}

// backupNetwork is what pods of backups reach; nobody reaches them.
const backupNetwork = `
podSelector: {matchLabels: {app.kubernetes.io/part-of: mneme, app.kubernetes.io/component: backup}}
policyTypes: [Ingress, Egress]
egress:
  - to:
      - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}
        podSelector: {matchLabels: {k8s-app: kube-dns}}
    ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
  - to: [{podSelector: {matchLabels: {app.kubernetes.io/name: mneme}}}]
    ports: [{port: https}]
`

func TestBackupPodsReachWhatTheyNeed(t *testing.T) {
	for from, pods := range backupPods(t) {
		text := backupNetwork
		if strings.HasSuffix(from, "buckets") {
			text += "  - ports: [{port: 443}]\n"
		}
		var want networkingv1.NetworkPolicySpec
		if err := yaml.UnmarshalStrict([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		endpoints := 0
		for _, m := range all[*corev1.ConfigMap](rendered{objects: pods["backup"].objects}) {
			if u, err := url.Parse(m.Data["AWS_ENDPOINT_URL"]); err != nil || m.Data["AWS_ENDPOINT_URL"] != "" && cmp.Or(u.Port(), "443") != "443" {
				t.Errorf("%s: %s is no address at the port that is open, %v", from, u, err)
			} else if u.Host != "" {
				endpoints++
			}
		}
		if want := strings.HasSuffix(from, "buckets"); want != (endpoints == 1) {
			t.Errorf("%s names %d endpoints", from, endpoints)
		}
		policies := slices.DeleteFunc(all[*networkingv1.NetworkPolicy](rendered{objects: pods["backup"].objects}), func(p *networkingv1.NetworkPolicy) bool { return p.Name != "mneme-backup" })
		if len(policies) != 1 {
			t.Fatalf("%s has %d policies for backups", from, len(policies))
		}
		if diff := gocmp.Diff(want, policies[0].Spec); diff != "" {
			t.Errorf("%s:\n%s", from, diff)
		}
	}
}

// stored are the files of the claims, and the objects of the buckets.
func stored(t *testing.T, claims string, buckets *s3mem.Backend) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(claims, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[path], err = os.ReadFile(path)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, bucket := range []string{"memories", "safe"} {
		list, err := buckets.ListBucket(bucket, nil, gofakes3.ListBucketPage{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Contents {
			object, err := buckets.GetObject(bucket, o.Key, nil)
			if err != nil {
				t.Fatal(err)
			}
			if out[bucket+": "+o.Key], err = io.ReadAll(object.Contents); err != nil {
				t.Fatal(err)
			}
			_ = object.Contents.Close()
		}
	}
	return out
}

// holding are the names of those that have the key in them, as digits or as it is.
func holding(t *testing.T, master string, in map[string][]byte) (out []string) {
	t.Helper()
	key, err := hex.DecodeString(master)
	if err != nil || len(key) != 32 {
		t.Fatalf("a master key of %d bytes, %v", len(key), err)
	}
	for name, content := range in {
		if bytes.Contains(content, key) || bytes.Contains(bytes.ToLower(content), []byte(master)) {
			out = append(out, name)
		}
	}
	return out
}

// damagedIsTakenOut has the newest backup rot, and takes it out with the arguments that the page
// about backups prints for the Job that prunes.
func damagedIsTakenOut(t *testing.T, n node, pods map[string]clientPod) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operate/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	printed := regexp.MustCompile(`"value": (\["backup", "prune",[^]]+\])`).FindSubmatch(page)
	if printed == nil {
		t.Fatal("the page prints no arguments")
	}
	takes := pods["backup-prune"]
	takes.spec = *takes.spec.DeepCopy()
	if err := json.Unmarshal(printed[1], &takes.spec.Containers[0].Args); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(n.claims, "*", "mneme", "log", "*.log"))
	if err != nil || len(logs) != 3 {
		t.Fatalf("%q, %v", logs, err)
	}
	newest := newestLog(t, filepath.Dir(filepath.Dir(logs[0])))
	b, err := os.ReadFile(newest)
	if err == nil {
		b[len(b)/2] ^= 1
		err = os.WriteFile(newest, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		pod  clientPod
		code int
		says string
	}{
		{"the newest is damaged", pods["backup-verify"], 7, "the newest backup cannot be restored"},
		{"so nothing is pruned", pods["backup-prune"], 7, "nothing was pruned"},
		{"a full one needs none of it", pods["backup-full"], 0, "all of the log"},
		{"the newest is whole", pods["backup-verify"], 0, "of which the newest"},
		{"an older one is not", pods["backup-older"], 7, "can be restored"},
		{"and is taken out", takes, 0, "removed 1 backup, "},
		{"all are whole", pods["backup-older"], 0, "3 backups of the cluster"},
	} {
		if out, code := n.run(t, c.pod); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%s: ended with %d, want %d, and says\n%s\nwant %q", c.what, code, c.code, out, c.says)
		}
	}
}

// newestLog is the log of the backup in a place that was made last: several are made within a
// second, so that their names do not say.
func newestLog(t *testing.T, place string) string {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(place, "backups", "*.json"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("%q, %v", manifests, err)
	}
	type manifest struct {
		ID     string    `json:"id"`
		MadeAt time.Time `json:"made_at"`
	}
	var newest manifest
	for _, name := range manifests {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Manifest manifest `json:"manifest"`
		}
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		if file.Manifest.MadeAt.After(newest.MadeAt) {
			newest = file.Manifest
		}
	}
	return filepath.Join(place, "log", newest.ID+".log")
}

// What the CronJobs call is called, on a node with the token and the keys that their Secrets
// hold: in volumes, and in two buckets of which each has credentials of its own.
func TestBackupPodsDoTheirWork(t *testing.T) {
	n := startNode(t)
	backend := s3mem.New()
	for _, bucket := range []string{"memories", "safe"} {
		if err := backend.CreateBucket(bucket); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewUnstartedServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	const credentials = "[log]\naws_access_key_id = A\naws_secret_access_key = a\n[keys]\naws_access_key_id = B\naws_secret_access_key = b\n"
	n.secrets["mneme-backup-bucket"] = map[string][]byte{"credentials": []byte(credentials),
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})}
	n.env = map[string]string{"AWS_ENDPOINT_URL": srv.URL}
	master := regexp.MustCompile("[0-9a-f]{64}").FindString(string(n.secrets["mneme-keys"]["master.key"]))
	for from, pods := range backupPods(t) {
		if strings.HasSuffix(from, "buckets") { // the examples name no authority
			for _, p := range pods {
				c := &p.spec.Containers[0]
				c.Env = append(c.Env, corev1.EnvVar{Name: "AWS_CA_BUNDLE", Value: "/etc/mneme/bucket/ca.crt"})
			}
		}
		t.Run(from, func(t *testing.T) {
			for _, c := range []struct {
				what, pod string
				code      int
				says      string
			}{
				{"there is nothing to look at yet", "backup-verify", 3, "there is no backup in"},
				{"all that there is", "backup", 0, "all of the log"},
				{"and what followed", "backup", 0, "what followed"},
				{"each file is as it was written", "backup-older", 0, "2 backups of the cluster"},
				{"and the newest, with what it goes on from", "backup-verify", 0, "of which the newest"},
				{"what is restored is what there was", "backup-drill", 0, "can be restored"},
				{"all of it again", "backup-full", 0, "all of the log"},
				{"nothing is old enough", "backup-prune", 0, "removed 0 backups, 2 files (2 of keys), "},
			} {
				if out, code := n.run(t, pods[c.pod]); code != c.code || !strings.Contains(out, c.says) {
					t.Errorf("%s: %s ended with %d, want %d, and says\n%s\nwant %q", c.what, c.pod, code, c.code, out, c.says)
				}
			}
			if !strings.HasSuffix(from, "buckets") {
				damagedIsTakenOut(t, n, pods)
			}
			kept := stored(t, n.claims, backend)
			if found := holding(t, master, kept); len(found) > 0 || len(kept) < 6 {
				t.Errorf("of %d files %q hold the master key", len(kept), found)
			}
			drill := pods["backup-drill"]
			drill.spec = *drill.spec.DeepCopy()
			drill.spec.Containers[0].Env[slices.IndexFunc(drill.spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "MNEME_MASTER_KEY" })].Value = "file:/etc/mneme/keys/other.key"
			if out, code := n.run(t, drill); code != 7 {
				t.Errorf("a drill without the master key ended with %d: %s", code, out)
			}
			// And the search finds it where it is.
			whole := pods["backup"]
			whole.spec = *whole.spec.DeepCopy()
			whole.spec.Containers[0].Args = slices.DeleteFunc(whole.spec.Containers[0].Args, func(arg string) bool { return arg == "--without-master" })
			if out, code := n.run(t, whole); code != 0 {
				t.Errorf("a backup with the master key ended with %d: %s", code, out)
			}
			if found := holding(t, master, stored(t, n.claims, backend)); len(found) == 0 {
				t.Error("the master key is not found where a backup has it")
			}
			if err := os.RemoveAll(n.claims); err != nil {
				t.Error(err)
			}
		})
		for _, bucket := range []string{"memories", "safe"} {
			if err := backend.ForceDeleteBucket(bucket); err != nil {
				t.Fatal(err)
			}
			if err := backend.CreateBucket(bucket); err != nil {
				t.Fatal(err)
			}
		}
	}
}
