package k8s

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// node is memnode with the Secrets that pods get, on loopback.
type node struct {
	address string
	secrets map[string]map[string][]byte // name → key → content
	memctl  string
	claims  string            // folder of what claims are bound to, by their names
	env     map[string]string // what stands in the place of a ConfigMap's variables
}

func startNode(t *testing.T) node {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "./cmd/memnode", "./cmd/memctl")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n := node{memctl: filepath.Join(dir, "memctl"), claims: filepath.Join(dir, "claims"), env: map[string]string{}, secrets: map[string]map[string][]byte{}}
	out, err := exec.CommandContext(ctx, n.memctl, "cluster", "secrets", "--json", "--out", filepath.Join(dir, "secrets"), "--host", "127.0.0.1").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.SecretList
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		n.secrets[s.Name] = s.Data
	}
	for key, text := range n.secrets["mneme-tls"] {
		if err := os.WriteFile(filepath.Join(dir, key), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "memnode"), "--data-dir", filepath.Join(dir, "data"), "--http-addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0",
		"--auth", "token", "--tls-cert", filepath.Join(dir, "tls.crt"), "--tls-key", filepath.Join(dir, "tls.key"))
	master := filepath.Join(dir, "master.key")
	if err := os.WriteFile(master, n.secrets["mneme-keys"]["master.key"], 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "MNEME_AUTH_TOKEN="+string(n.secrets["mneme-keys"]["operator.token"]), "MNEME_MASTER_KEY=file:"+master)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	ready, err := bufio.NewReader(stdout).ReadString('\n')
	_, rest, _ := strings.Cut(ready, "http=")
	if n.address, _, _ = strings.Cut(rest, " "); err != nil || n.address == "" {
		t.Fatalf("memnode said %q and %s, %v", ready, &said, err)
	}
	return n
}

// run does what the kubelet does for a pod: its volumes become folders, and its containers
// run one after the other. It returns what they print, and the code of the one that fails.
func (n node) run(t *testing.T, p clientPod) (out string, code int) {
	t.Helper()
	root := t.TempDir()
	n.mount(t, p, root)
	below := strings.NewReplacer("/etc/mneme", root+"/etc/mneme", "/var/", root+"/var/")
	for _, c := range p.containers() {
		cmd := exec.CommandContext(t.Context(), n.memctl)
		if !slices.Equal(c.Command, []string{"memctl"}) {
			t.Fatalf("%s runs %v", c.Name, c.Command)
		}
		cmd.Env = []string{"HOME=" + root}
		var named []string // $(NAME), value, …
		set := func(name, value string) {
			value = below.Replace(value)
			cmd.Env, named = append(cmd.Env, name+"="+value), append(named, "$("+name+")", value)
		}
		for _, from := range c.EnvFrom {
			for _, m := range all[*corev1.ConfigMap](rendered{objects: p.objects}) {
				if m.Name == from.ConfigMapRef.Name {
					for name, value := range m.Data {
						set(name, first(n.env[name], value))
					}
				}
			}
		}
		for _, e := range c.Env {
			value := e.Value
			switch {
			case e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil:
				value = string(n.secrets[e.ValueFrom.SecretKeyRef.Name][e.ValueFrom.SecretKeyRef.Key])
			case e.Name == "MNEME_ADDR":
				if value != "https://mneme.$(POD_NAMESPACE).svc:8787" || !slices.Contains(named, "$(POD_NAMESPACE)") {
					t.Errorf("%s asks %s", c.Name, value)
				}
				value = "https://" + strings.TrimPrefix(n.address, "https://")
			case e.Name == "POD_NAMESPACE":
				value = "mneme"
			}
			set(e.Name, value)
		}
		for _, arg := range c.Args {
			cmd.Args = append(cmd.Args, strings.NewReplacer(named...).Replace(below.Replace(arg)))
		}
		said, err := cmd.CombinedOutput()
		out += string(said)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return out, exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return out, 0
}

// mount writes the files of a pod's volumes below root.
func (n node) mount(t *testing.T, p clientPod, root string) {
	t.Helper()
	files := map[string]map[string][]byte{} // volume → name → content
	for _, v := range p.spec.Volumes {
		files[v.Name] = map[string][]byte{}
		switch {
		case v.ConfigMap != nil:
			for _, c := range all[*corev1.ConfigMap](rendered{objects: p.objects}) {
				if c.Name == v.ConfigMap.Name {
					for key, text := range c.Data {
						files[v.Name][key] = []byte(text)
					}
				}
			}
		case v.DownwardAPI != nil:
			for _, item := range v.DownwardAPI.Items {
				key := strings.TrimSuffix(strings.TrimPrefix(item.FieldRef.FieldPath, "metadata.annotations['"), "']")
				files[v.Name][item.Path] = []byte(p.meta.Annotations[key])
			}
		case v.PersistentVolumeClaim != nil || v.Ephemeral != nil:
			n.claim(t, p, v, root)
			continue
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				if source.Secret.Items == nil {
					maps.Copy(files[v.Name], n.secrets[source.Secret.Name])
				}
				for _, item := range source.Secret.Items {
					files[v.Name][item.Path] = n.secrets[source.Secret.Name][item.Key]
				}
			}
		}
		if len(files[v.Name]) == 0 {
			t.Fatalf("the volume %s has no files", v.Name)
		}
	}
	for _, m := range p.containers()[0].VolumeMounts {
		dir := filepath.Join(root, m.MountPath)
		if p.claims(m.Name) {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, content := range files[m.Name] {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// claim puts the folder of a claim where the pod has it; what is not claimed by a name is
// empty each time.
func (n node) claim(t *testing.T, p clientPod, v corev1.Volume, root string) {
	t.Helper()
	folder := t.TempDir()
	if v.PersistentVolumeClaim != nil {
		if !slices.ContainsFunc(all[*corev1.PersistentVolumeClaim](rendered{objects: p.objects}), func(c *corev1.PersistentVolumeClaim) bool {
			return c.Name == v.PersistentVolumeClaim.ClaimName
		}) {
			t.Errorf("there is no claim %s", v.PersistentVolumeClaim.ClaimName)
		}
		folder = filepath.Join(n.claims, v.PersistentVolumeClaim.ClaimName)
		if err := os.MkdirAll(filepath.Join(folder, "lost+found"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range p.containers()[0].VolumeMounts {
		if m.Name != v.Name {
			continue
		}
		at := filepath.Join(root, m.MountPath)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(folder, at); err != nil {
			t.Fatal(err)
		}
	}
}

func first(given, otherwise string) string {
	if given != "" {
		return given
	}
	return otherwise
}
