package plane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Node says what a node is made of, beside the programs of the control plane.
type Node struct {
	Debian string            // folder of Debian's containerd, runc, nft, iptables, ipset and busybox
	Images map[string]string // archives to load, by what they are for messages
	Disks  int               // volumes that pods may claim
}

// StartNode makes the namespaces that Isolate prepared the only node.
func (p *Plane) StartNode(n Node) {
	p.tb.Helper()
	p.Run("kube-controller-manager", nil, "kube-controller-manager", "--kubeconfig="+p.pki("controllers.conf"), "--authentication-kubeconfig="+p.pki("controllers.conf"),
		"--authorization-kubeconfig="+p.pki("controllers.conf"), "--leader-elect=false", "--bind-address=127.0.0.1", "--service-account-private-key-file="+p.pki("sa.key"),
		"--root-ca-file="+p.pki("ca.crt"), "--use-service-account-credentials")
	p.Run("kube-scheduler", nil, "kube-scheduler", "--kubeconfig="+p.pki("scheduler.conf"), "--authentication-kubeconfig="+p.pki("scheduler.conf"),
		"--authorization-kubeconfig="+p.pki("scheduler.conf"), "--leader-elect=false", "--bind-address=127.0.0.1")
	p.startContainerd(n)
	p.startKubelet()
	p.startNetwork(n)
	p.makeDisks(n.Disks)
	p.Eventually("the node is ready", func() error {
		_, err := p.Try("", "wait", "node/node1", "--for=condition=Ready", "--timeout=5s")
		return err
	})
}

// Isolate keeps from the machine what a node would change of it, and comes before Start:
// the caller is in a network, a mount and a PID namespace of its own, as root. Its files
// are in dir.
func Isolate(tb testing.TB, dir string) {
	tb.Helper()
	check := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	for _, dir := range []string{"/run", "/var/log", "/var/lib/cni"} {
		check(os.MkdirAll(dir, 0o755))
		check(syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"))
	}
	// The kubelet would set these for the whole machine: it sees files with the values that
	// it wants.
	fakes := filepath.Join(dir, "sysctl")
	check(os.MkdirAll(fakes, 0o755))
	for name, value := range map[string]string{"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000", "vm/panic_on_oom": "0"} {
		fake := filepath.Join(fakes, strings.ReplaceAll(name, "/", "."))
		check(os.WriteFile(fake, []byte(value+"\n"), 0o644))
		check(syscall.Mount(fake, "/proc/sys/"+name, "", syscall.MS_BIND, ""))
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"addr", "add", NodeIP + "/32", "dev", "lo"},
		// What goes to a service needs a route before kube-proxy turns it to a pod.
		{"route", "add", services, "dev", "lo"}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			tb.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	check(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)) // of this namespace
}

func (p *Plane) socket() string { return p.path("containerd.sock") }

func (p *Plane) startContainerd(n Node) {
	p.write("cni/10.conflist", fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "hairpinMode": true,
 "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q}]]}}]}`, p.path("cni-addresses"), podRange))
	config := p.write("containerd.toml", fmt.Sprintf(`version = 2
root = %[1]q
state = "/run/containerd"
[grpc]
  address = %[2]q
[ttrpc]
  address = %[3]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:dev"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = %[4]q
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %[5]q
    conf_dir = %[6]q
`, p.path("containerd"), p.socket(), p.socket()+".ttrpc", filepath.Join(n.Debian, "usr/sbin/runc"), p.bin, p.path("cni")))
	bin := filepath.Join(n.Debian, "usr/bin")
	p.Run("containerd", []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, filepath.Join(bin, "containerd"), "-c", config)
	ctr := func(args ...string) ([]byte, error) {
		return exec.Command(filepath.Join(bin, "ctr"), append([]string{"-a", p.socket(), "-n", "k8s.io"}, args...)...).CombinedOutput()
	}
	p.Eventually("containerd answers", func() error {
		_, err := ctr("version")
		return err
	})
	for what, archive := range n.Images {
		if out, err := ctr("images", "import", archive); err != nil {
			p.tb.Fatalf("load the image of %s: %v: %s", what, err, out)
		}
	}
}

func (p *Plane) startKubelet() {
	config := p.write("kubelet.yaml", fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %[1]q}}
authorization: {mode: AlwaysAllow}
address: %[2]s
tlsCertFile: %[3]q
tlsPrivateKeyFile: %[4]q
containerRuntimeEndpoint: unix://%[5]s
clusterDomain: cluster.local
clusterDNS: [%[7]s]
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: true
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
evictionHard: {memory.available: "50Mi", nodefs.available: "1%%", imagefs.available: "1%%"}
resolvConf: ""
podLogsDir: %[6]q
shutdownGracePeriod: 0s
`, p.pki("ca.crt"), NodeIP, p.pki("kubelet.crt"), p.pki("kubelet.key"), p.socket(), p.path("pods"), names))
	p.Run("kubelet", nil, "kubelet", "--config="+config, "--kubeconfig="+p.pki("kubelet.conf"), "--hostname-override=node1", "--node-ip="+NodeIP,
		"--root-dir="+p.path("kubelet"), "--cert-dir="+p.path("kubelet-pki"))
}

// startNetwork gives services their addresses and names.
func (p *Plane) startNetwork(n Node) {
	config := p.write("proxy.yaml", fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: %q}
clusterCIDR: %s
hostnameOverride: node1
nftables: {masqueradeAll: true}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, p.pki("admin.conf"), podRange))
	// masqueradeAll: pods share one bridge, and an answer that did not pass the node again
	// would come from another address than was asked.
	libraries, err := filepath.Glob(filepath.Join(n.Debian, "usr/lib/*-linux-gnu"))
	p.check(err)
	tables := p.path("tables")
	p.check(os.MkdirAll(tables, 0o755))
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore"} {
		p.check(os.Symlink(filepath.Join(n.Debian, "usr/sbin/xtables-nft-multi"), filepath.Join(tables, name)))
	}
	debian := []string{"PATH=" + tables + ":" + filepath.Join(n.Debian, "usr/sbin") + ":" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + strings.Join(libraries, ":"),
		"XTABLES_LIBDIR=" + filepath.Join(libraries[0], "xtables")}
	p.Run("kube-proxy", debian, "kube-proxy", "--config="+config)
	corefile := p.write("Corefile", fmt.Sprintf(`.:53 {
  errors
  ready 127.0.0.1:8181
  loadbalance
  cache 5
  kubernetes cluster.local in-addr.arpa {
    kubeconfig %s
    ttl 5
  }
}
`, p.pki("admin.conf")))
	p.Run("coredns", nil, "coredns", "-conf", corefile)
	p.startNames(debian)
	p.debian = debian
}

// KeepPolicies has the network keep to NetworkPolicies from now on, also between pods of the
// bridge.
func (p *Plane) KeepPolicies() {
	p.tb.Helper()
	p.check(os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("1"), 0o644)) // of this namespace
	p.Run("policies", p.debian, "policies", "--kubeconfig="+p.pki("admin.conf"), "--node=node1", "--services="+services)
}

// startNames makes a pod and a service that pods ask for names, as policies have it. The pod
// hands on to the node's CoreDNS what it is asked, by rules in its own network.
func (p *Plane) startNames(debian []string) {
	manifest := fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: %s
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: v1
kind: Pod
metadata: {name: names, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  dnsPolicy: Default
  automountServiceAccountToken: false
  containers: [{name: pause, image: "localhost/pause:dev", imagePullPolicy: IfNotPresent, env: [{name: CALLER, value: names}]}]
`, names)
	p.Eventually("the pod for names runs", func() error { // once its namespace has an account
		if _, err := p.Try(manifest, "apply", "--server-side", "-f", "-"); err != nil {
			return err
		}
		_, err := p.Try("", "-n", "kube-system", "wait", "pod/names", "--for=condition=Ready", "--timeout=5s")
		return err
	})
	pid := Process(p.tb, "pause", "CALLER=names")
	cmd := exec.Command("nsenter", "-t", fmt.Sprint(pid), "-n", "bash", "-euc", fmt.Sprintf(`echo 1 > /proc/sys/net/ipv4/ip_forward
nft -f - <<END
table ip names {
  chain before { type nat hook prerouting priority dstnat; meta l4proto { tcp, udp } th dport 53 dnat to %s; }
  chain after { type nat hook postrouting priority srcnat; masquerade; }
}
END`, NodeIP))
	cmd.Env = append(os.Environ(), debian...)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.tb.Fatalf("rules of the pod for names: %v: %s", err, out)
	}
}

// Process finds the process of a program that has a variable.
func Process(tb testing.TB, program, variable string) int {
	tb.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range entries {
		environ, _ := os.ReadFile(path)
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
		if strings.TrimSpace(string(name)) == program && strings.Contains("\x00"+string(environ), "\x00"+variable+"\x00") {
			var pid int
			if _, err := fmt.Sscanf(path, "/proc/%d/environ", &pid); err != nil {
				tb.Fatal(err)
			}
			return pid
		}
	}
	tb.Fatalf("there is no %s with %s", program, variable)
	return 0
}

// makeDisks makes volumes in folders of this machine, with a class of their own that
// counts where a claim names none.
func (p *Plane) makeDisks(n int) {
	var text strings.Builder
	text.WriteString(`apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disks, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
`)
	for i := range n {
		dir := p.path("disks", fmt.Sprint(i))
		p.check(os.MkdirAll(dir, 0o755))
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-%d}
spec:
  capacity: {storage: 100Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: disks
  local: {path: %s}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node1]}]}]}}
`, i, dir)
	}
	if _, err := p.Try(text.String(), "apply", "--server-side", "-f", "-"); err != nil {
		p.tb.Fatal(err)
	}
}
