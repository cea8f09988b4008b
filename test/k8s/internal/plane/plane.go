// Package plane runs a Kubernetes control plane, and a node, from programs that
// controlplane/build.sh has built: etcd, kube-apiserver and kubectl, and for pods the
// controllers, the scheduler, containerd, kubelet, kube-proxy and CoreDNS.
//
// Invariants: it listens on loopback and on addresses of its own network namespace; every
// process that it starts ends with the test; what the processes say is in files that are
// named when something fails.
//
// Not its job: anything that Mneme is.
package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every waiting: it is against hanging and measures nothing.
const patience = 5 * time.Minute

// Plane is a running control plane.
type Plane struct {
	Dir string // everything of it
	bin string
	tb  testing.TB
	api string // address of the API server

	debian  []string                   // variables by which programs of Debian are found
	running map[string]<-chan struct{} // programs by name; closed when one has ended
}

// Missing says what is not there of programs, and how to get it; "" if all are.
func Missing(bin string, programs ...string) string {
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return fmt.Sprintf("%s is missing in %q: test/k8s/controlplane/build.sh builds it (make test-k8s, make test-k8s-node)", name, bin)
		}
	}
	return ""
}

// Start starts etcd and the API server from the programs in bin, with its files in dir.
func Start(tb testing.TB, bin, dir string) *Plane {
	tb.Helper()
	p := &Plane{Dir: dir, bin: bin, tb: tb, running: map[string]<-chan struct{}{}}
	p.makePKI()
	store, peer := p.free(), p.free()
	p.api = p.free()
	host, port, _ := net.SplitHostPort(p.api)
	p.writeKubeconfigs()
	p.Run("etcd", nil, "etcd", "--data-dir", p.path("etcd"), "--listen-client-urls", "http://"+store, "--advertise-client-urls", "http://"+store,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "default=http://"+peer, "--unsafe-no-fsync")
	p.Run("kube-apiserver", nil, "kube-apiserver", "--etcd-servers=http://"+store, "--bind-address="+host, "--advertise-address="+host, "--secure-port="+port,
		"--endpoint-reconciler-type=none", "--tls-cert-file="+p.pki("apiserver.crt"), "--tls-private-key-file="+p.pki("apiserver.key"), "--client-ca-file="+p.pki("ca.crt"),
		"--kubelet-client-certificate="+p.pki("admin.crt"), "--kubelet-client-key="+p.pki("admin.key"), "--kubelet-certificate-authority="+p.pki("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP", "--service-account-key-file="+p.pki("sa.pub"), "--service-account-signing-key-file="+p.pki("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range="+services, "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction", "--allow-privileged=true")
	p.Eventually("the API server is ready", func() error {
		_, err := p.Try("", "get", "--raw", "/readyz")
		return err
	})
	return p
}

func (p *Plane) path(elem ...string) string {
	return filepath.Join(append([]string{p.Dir}, elem...)...)
}
func (p *Plane) pki(name string) string { return p.path("pki", name) }

// free is a loopback address where nobody listens.
func (p *Plane) free() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// write puts a file below Dir and returns its path.
func (p *Plane) write(name, text string) string {
	path := p.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.tb.Fatal(err)
	}
	return path
}

// Run starts a program of bin, or at a path, until the test ends. What it says goes to
// NAME.log.
func (p *Plane) Run(name string, environ []string, program string, args ...string) {
	p.tb.Helper()
	if !filepath.IsAbs(program) {
		program = filepath.Join(p.bin, program)
	}
	if err := os.MkdirAll(p.path("log"), 0o755); err != nil {
		p.tb.Fatal(err)
	}
	log, err := os.Create(p.path("log", name+".log"))
	if err != nil {
		p.tb.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), environ...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.tb.Fatalf("start %s: %v", name, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	p.running[name] = ended
	p.tb.Cleanup(func() {
		delete(p.running, name)
		select {
		case <-ended:
			p.tb.Errorf("%s had ended by itself: %v", name, cmd.ProcessState)
		default:
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if p.tb.Failed() {
			p.tb.Logf("%s said at last:\n%s", name, tail(log.Name()))
		}
		log.Close()
	})
}

func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	const most = 1200
	return string(b[max(0, len(b)-most):])
}

// Eventually waits until ok gives nil.
func (p *Plane) Eventually(what string, ok func() error) {
	p.tb.Helper()
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		if err = ok(); err == nil {
			return
		}
		for name, ended := range p.running {
			select {
			case <-ended:
				p.tb.Fatalf("%s: %s has ended", what, name)
			default:
			}
		}
	}
	p.tb.Fatalf("%s: not within %s: %v", what, patience, err)
}

// Kubectl runs kubectl as the administrator and returns what it prints; the test ends
// where it fails.
func (p *Plane) Kubectl(args ...string) string {
	p.tb.Helper()
	out, err := p.Try("", args...)
	if err != nil {
		p.tb.Fatal(err)
	}
	return out
}

// Try is Kubectl with standard input, for who expects an error.
func (p *Plane) Try(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.pki("admin.conf"), "HOME="+p.Dir)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), errors.Join(err, errors.New(strings.TrimSpace(said.String()))))
	}
	return out.String() + said.String(), nil
}

// Shell runs a script in dir as the administrator, with kubectl and the programs of bin
// in its path, and returns what it prints.
func (p *Plane) Shell(dir, script string, path ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.pki("admin.conf"), "HOME="+p.Dir, "PATH="+strings.Join(append(path, p.bin, os.Getenv("PATH")), ":"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", script, err, out)
	}
	return string(out), err
}

// CertManagerKinds makes the kinds of cert-manager, as its module has them of which go.mod
// names the version.
func (p *Plane) CertManagerKinds() {
	p.tb.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	p.check(err)
	for _, kind := range []string{"issuers", "clusterissuers", "certificates", "certificaterequests"} {
		p.Kubectl("apply", "--server-side", "-f", filepath.Join(strings.TrimSpace(string(dir)), "deploy/crds/cert-manager.io_"+kind+".yaml"))
		p.Kubectl("wait", "crd/"+kind+".cert-manager.io", "--for=condition=Established", "--timeout=1m")
	}
}

// RunInside runs a controller of bin as the administrator, until the test ends.
func (p *Plane) RunInside(program string) {
	p.tb.Helper()
	p.Run(program, nil, program, "--kubeconfig="+p.pki("admin.conf"))
}
