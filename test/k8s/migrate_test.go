package k8s

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// migrations are the folders of deploy/k8s/migrate, and what the Job of each calls.
var migrations = map[string][]string{
	"to-one":        {"restore", "--data-dir", "/var/lib/mneme", "--from", "/var/backups/log/mneme", "--keys-from", "/var/backups/keys/mneme"},
	"to-one-bucket": {"restore", "--data-dir", "/var/lib/mneme", "--from", "$(BACKUP_TO)", "--keys-from", "$(BACKUP_KEYS_TO)"},
	"to-three":      {"cluster", "init", "--data-dir", "/var/lib/mneme", "--node-id", "mneme-0", "--peer-certs", "/etc/mneme/peers", "--yes"},
}

// migratePods are those of the Jobs that make one node three, and three one.
func migratePods(t *testing.T) (out []clientPod) {
	t.Helper()
	for name := range migrations {
		out = append(out, podsOf("migrate "+name, render(t, deployDir+"/k8s/migrate/"+name))...)
	}
	if len(out) != len(migrations) {
		t.Fatalf("%d pods migrate", len(out))
	}
	return out
}

// A Job of a migration works on the volume of the first node, and what memctl refuses stays refused.
func TestMigrationsWorkOnTheFirstNodesVolume(t *testing.T) {
	set := one[*appsv1.StatefulSet](t, overlay(t, "team"))
	node := set.Name + "-0"
	claimed := set.Spec.VolumeClaimTemplates[0]
	for name, args := range migrations {
		t.Run(name, func(t *testing.T) {
			r := rendered{name: name, objects: render(t, deployDir+"/k8s/migrate/"+name)}
			for _, o := range r.objects {
				if got := metadata(t, o).GetNamespace(); got != set.Namespace {
					t.Errorf("%s is in the namespace %q", metadata(t, o).GetName(), got)
				}
			}
			job, p := one[*batchv1.Job](t, r), podsOf("", r.objects)[0]
			if got := p.spec.Containers[0].Args; !slices.Equal(got, args) {
				t.Errorf("it calls %q, want %q", got, args)
			}
			if id := p.after("--node-id"); id != "" && id != node {
				t.Errorf("it makes the node %s, and the pod is %s", id, node)
			}
			if got := p.claimOf(p.after("--data-dir")); got != claimed.Name+"-"+node {
				t.Errorf("it works on the claim %q", got)
			}
			failsOnceForAll(t, job.Spec, 2, 5, 7)
			if *job.Spec.BackoffLimit < 2 || job.Spec.ActiveDeadlineSeconds != nil && *job.Spec.ActiveDeadlineSeconds < 3600 || *job.Spec.TTLSecondsAfterFinished < 600 {
				t.Errorf("%+v", job.Spec)
			}
			claims := all[*corev1.PersistentVolumeClaim](r)
			if name == "to-three" {
				if len(claims) > 0 {
					t.Error("it makes a volume, and is to take the one that there is")
				}
				return
			}
			c := one[*corev1.PersistentVolumeClaim](t, r)
			if c.Name != claimed.Name+"-"+node || !slices.Equal(c.Spec.AccessModes, claimed.Spec.AccessModes) || c.Labels["app.kubernetes.io/name"] != set.Name ||
				c.Spec.Resources.Requests.Storage().Cmp(*claimed.Spec.Resources.Requests.Storage()) != 0 {
				t.Errorf("the claim is not as the StatefulSet makes it: %+v", c)
			}
		})
	}
}
