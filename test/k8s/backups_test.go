package k8s

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestBackupCronJobs(t *testing.T) {
	for from, pods := range backupPods(t) {
		var at []string
		for _, p := range pods {
			for _, o := range p.objects {
				job, is := o.(*batchv1.CronJob)
				if !is || "mneme-"+strings.TrimPrefix(p.from, from+": CronJob mneme-") != job.Name {
					continue
				}
				spec := job.Spec
				at = append(at, spec.Schedule)
				if spec.ConcurrencyPolicy != batchv1.ForbidConcurrent || *spec.TimeZone != "Etc/UTC" || *spec.FailedJobsHistoryLimit < 1 || *spec.SuccessfulJobsHistoryLimit < 1 {
					t.Errorf("%s: %+v", p.from, spec)
				}
				rules := spec.JobTemplate.Spec.PodFailurePolicy.Rules
				if len(rules) != 2 || !slices.Equal(rules[1].OnExitCodes.Values, []int32{2, 4, 7}) || *rules[1].OnExitCodes.ContainerName != p.spec.Containers[0].Name {
					t.Errorf("%s: a mistake is tried again: %+v", p.from, rules)
				}
				if job.Labels["app.kubernetes.io/component"] != "backup" || p.meta.Labels["app.kubernetes.io/component"] != "backup" {
					t.Errorf("%s: labels %v, its pods' %v", p.from, job.Labels, p.meta.Labels)
				}
			}
		}
		slices.Sort(at)
		if len(slices.Compact(at)) != 5 {
			t.Errorf("%s: several begin at once: %q", from, at)
		}
	}
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
	master := strings.TrimSpace(string(n.secrets["mneme-keys"]["master.key"]))
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
				{"each file is as it was written", "backup-verify", 0, "2 backups of the cluster"},
				{"what is restored is what there was", "backup-drill", 0, "can be restored"},
				{"all of it again", "backup-full", 0, "all of the log"},
				{"nothing is old enough", "backup-prune", 0, "removed 0 backups, 0 B; kept 3 backups"},
			} {
				if out, code := n.run(t, pods[c.pod]); code != c.code || !strings.Contains(out, c.says) {
					t.Errorf("%s: %s ended with %d, want %d, and says\n%s\nwant %q", c.what, c.pod, code, c.code, out, c.says)
				}
			}
			if strings.HasSuffix(from, "buckets") {
				return
			}
			err := filepath.WalkDir(n.claims, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				if strings.Contains(string(text), master) {
					t.Errorf("%s holds the master key", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			drill := pods["backup-drill"]
			drill.spec = *drill.spec.DeepCopy()
			drill.spec.Containers[0].Env[slices.IndexFunc(drill.spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "MNEME_MASTER_KEY" })].Value = "file:/etc/mneme/keys/other.key"
			if out, code := n.run(t, drill); code != 7 {
				t.Errorf("a drill without the master key ended with %d: %s", code, out)
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
