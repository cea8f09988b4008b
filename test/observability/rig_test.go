package observability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/eventlog"
	"mneme/internal/eventlog/natstest"
	"mneme/internal/node"
	"mneme/internal/peer/devca"
	"mneme/internal/testaddr"
)

func TestMain(m *testing.M) {
	eventlog.ShortenElections()
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

const (
	mib      = 1 << 20
	spacious = 1 << 40
)

// disk is what is below a node's data directory, but for what NATS and Raft write there.
type disk struct {
	vfs.FS
	free  atomic.Uint64
	fault atomic.Pointer[func(errorfs.Op) error] // nil: none; it may also wait
}

func newDisk() *disk {
	d := &disk{}
	d.free.Store(spacious)
	d.FS = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if f := d.fault.Load(); f != nil {
			return (*f)(op)
		}
		return nil
	}))
	return d
}

// GetDiskUsage implements vfs.FS.
func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load(), TotalBytes: spacious}, nil
}

// breaks has operations that write to files whose path holds part fail until it is mended.
func (d *disk) breaks(part string, err error) (mended func()) {
	return d.does(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, part) {
			return err
		}
		return nil
	})
}

func (d *disk) does(f func(errorfs.Op) error) (mended func()) {
	d.fault.Store(&f)
	return func() { d.fault.Store(nil) }
}

func alone(t *testing.T) node.Config {
	return node.Config{DataDir: filepath.Join(t.TempDir(), "data"), HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", FS: newDisk()}
}

func open(t *testing.T, cfg node.Config) *node.Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	n, err := node.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, n) })
	return n
}

func shut(t *testing.T, n *node.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Logf("close: %v", err)
	}
}

// opens opens a node in the place of one that is scraped.
func (p *prometheus) opens(cfg node.Config) *node.Node {
	p.t.Helper()
	n := open(p.t, cfg)
	p.targets["n1"] = n.HTTPURL()
	return n
}

// ask posts to a node and returns the status and the answer.
func (p *prometheus) ask(n *node.Node, path string, body any) (status int, answer string) {
	p.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := p.client.Post(n.HTTPURL()+path, "application/json", strings.NewReader(string(b)))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(out)
}

type fields map[string]any

const captures = "/v1/namespaces/default/events"

func (p *prometheus) capture(n *node.Node, text string) int {
	p.t.Helper()
	status, _ := p.ask(n, captures, fields{"agent": "a", "text": text})
	return status
}

// captured is a capture that must be acknowledged.
func (p *prometheus) captured(n *node.Node, text string) {
	p.t.Helper()
	if status, answer := p.ask(n, captures, fields{"agent": "a", "text": text}); status != http.StatusOK {
		p.t.Fatalf("a capture: %d %s", status, answer)
	}
}

func (p *prometheus) search(n *node.Node, more fields) (int, string) {
	p.t.Helper()
	body := fields{"query": "memory", "limit": 3}
	for name, v := range more {
		body[name] = v
	}
	return p.ask(n, "/v1/namespaces/default/search", body)
}

// beside asks something as often at once, and returns how often each status was answered.
func beside(times int, ask func(i int) int) map[int]int {
	var asking sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for i := range times {
		asking.Go(func() {
			status := ask(i)
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	asking.Wait()
	return statuses
}

// trio is the nodes of a cluster in this process. What the others send to a node passes its
// relay.
type trio struct {
	p      *prometheus
	ids    []string
	cfgs   []node.Config
	nodes  []*node.Node
	disks  []*disk
	relays []*natstest.Relay
	certs  devca.Options
}

func newTrio(t *testing.T, valid time.Duration) *trio {
	t.Helper()
	tr := &trio{p: watch(t), ids: []string{"n1", "n2", "n3"}, nodes: make([]*node.Node, 3)}
	addrs := testaddr.Reserve(t, 9)
	tr.certs = devca.Options{Dir: t.TempDir(), Nodes: tr.ids, Valid: valid}
	if _, err := devca.Make(tr.certs); err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "mneme") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	var join []string
	for i := range tr.ids {
		tr.relays = append(tr.relays, natstest.NewRelay(t, addrs[3*i+1]))
		join = append(join, tr.relays[i].Addr)
	}
	for i, id := range tr.ids {
		cfg := alone(t)
		cfg.HTTPAddr, cfg.AdminSocket = addrs[3*i], filepath.Join(sockets, id)
		cfg.Cluster = &node.ClusterConfig{NodeID: id, PeerAddr: addrs[3*i+1], PeerAdvertise: tr.relays[i].Addr, RouteAddr: addrs[3*i+2], Join: join, Certs: tr.certs.Dir, Expect: 3}
		tr.cfgs, tr.disks = append(tr.cfgs, cfg), append(tr.disks, cfg.FS.(*disk))
		tr.p.targets[id] = "http://" + cfg.HTTPAddr
	}
	t.Cleanup(func() {
		for _, r := range tr.relays {
			r.Heal()
		}
		tr.shut(0, 1, 2)
	})
	tr.open(0, 1, 2)
	return tr
}

// open opens some of the nodes at once.
func (tr *trio) open(which ...int) {
	tr.p.t.Helper()
	var opening sync.WaitGroup
	for _, i := range which {
		opening.Go(func() {
			ctx, cancel := context.WithTimeout(tr.p.t.Context(), patience)
			defer cancel()
			n, err := node.Open(ctx, tr.cfgs[i])
			if err != nil {
				tr.p.t.Errorf("%s: %v", tr.ids[i], err)
				return
			}
			tr.nodes[i] = n
		})
	}
	opening.Wait()
	if tr.p.t.Failed() {
		tr.p.t.FailNow()
	}
}

func (tr *trio) shut(which ...int) {
	var closing sync.WaitGroup
	for _, i := range which {
		if n := tr.nodes[i]; n != nil {
			tr.nodes[i] = nil
			closing.Go(func() { shut(tr.p.t, n) })
		}
	}
	closing.Wait()
}

// leader waits until a node leads and returns its number.
func (tr *trio) leader() (lead int) {
	tr.p.t.Helper()
	tr.p.await("somebody to lead", func() bool {
		lead = slices.IndexFunc(tr.nodes, func(n *node.Node) bool {
			if n == nil {
				return false
			}
			v, _ := tr.p.value(n.HTTPURL(), "mneme_shard_leader")
			return v == 1
		})
		return lead >= 0
	})
	return lead
}

func (tr *trio) place(i int) place {
	return place{node: "http://" + tr.cfgs[i].HTTPAddr, other: "http://" + tr.cfgs[(i+1)%3].HTTPAddr, dir: tr.cfgs[i].DataDir, id: tr.ids[i]}
}

// built is the folder of the programs that pages name.
var built string

var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mneme-programs")
	if err != nil {
		return "", err
	}
	built = dir
	for _, args := range [][]string{
		{"-C", top(), "-o", dir + string(os.PathSeparator), "./cmd/memctl", "./cmd/memnode"},
		{"-o", filepath.Join(dir, "jq"), "github.com/itchyny/gojq/cmd/gojq"},
	} {
		if out, err := exec.Command("go", append([]string{"build"}, args...)...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build %v: %w\n%s", args, err, out)
		}
	}
	return dir, nil
})

// place is what the words of a page stand for: http://NODE:8787, http://OTHER:8787, DATA-DIR,
// NAMESPACE, CERT, POSITION, NODE.
type place struct {
	node, other, dir, cert, position, id string
	env                                  []string
}

func at(n *node.Node, cfg node.Config) place { return place{node: n.HTTPURL(), dir: cfg.DataDir} }

func (at place) put(command string) string {
	for _, r := range [][2]string{{"http://NODE:8787", at.node}, {"https://NODE:8787", at.node}, {"http://OTHER:8787", at.other}, {"DATA-DIR", at.dir},
		{"DIR", at.dir}, {"NAMESPACE", "default"}, {"CERT", at.cert}, {"POSITION", at.position}, {"NODE", at.id}} {
		if r[1] != "" {
			command = strings.ReplaceAll(command, r[0], r[1])
		}
	}
	return command
}

// Programs that every machine has or that are built here. What a page prints beside them is
// the operating system's, NATS's or Kubernetes' (journalctl, smartctl, nats, kubectl).
var ours = []string{"memctl", "memnode", "curl", "openssl", "ls", "df", "du"}

// Which ends are good ones. Of memctl 6 is "not now" and 7 "log and state disagree", as
// docs/configuration.md has them: the page is read while something is wrong.
var ends = map[string][]int{"memctl": {0, 6, 7}, "curl": {0, 7, 28, 35, 52, 56}}

var checkNamed = regexp.MustCompile(`checks? "([^"]+)"`)

// follow runs what the page of an alert prints, line by line, as somebody would who is called
// while it fires, and returns what it printed. Where a line says which check of doctor tells
// more, that check must not be ok.
func (p *prometheus) follow(alert string, at place) string {
	p.t.Helper()
	text, ran := read(p.t, "docs", "operate", "alerts", alert+".md"), ""
	for i, block := range strings.Split(text, "```") {
		if i%2 == 0 {
			continue
		}
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			words := strings.Fields(line)
			if len(words) == 0 || !slices.Contains(ours, words[0]) {
				continue
			}
			out := p.run(line, at)
			if m := checkNamed.FindStringSubmatch(line); m != nil && !regexp.MustCompile(`(?m)^(fail|warn) +`+regexp.QuoteMeta(at.put(m[1]))+`\b`).MatchString(out) {
				p.t.Errorf("%s: the check %q is well, or not there:\n%s", alert, m[1], out)
			}
			ran += out
		}
	}
	return ran
}

// does runs a command that a page names in its text, with what else is needed where nobody
// can be asked.
func (p *prometheus) does(alert, command string, at place, more ...string) string {
	p.t.Helper()
	if text := read(p.t, "docs", "operate", "alerts", alert+".md"); !strings.Contains(text, command) {
		p.t.Errorf("the page of %s does not say %q", alert, command)
	}
	return p.run(strings.Join(append([]string{command}, more...), " "), at)
}

func (p *prometheus) run(line string, at place) string {
	p.t.Helper()
	dir, err := programs()
	if err != nil {
		p.t.Fatal(err)
	}
	program := strings.Fields(line)[0]
	if _, err := exec.LookPath(program); err != nil && program != "memctl" && program != "memnode" {
		p.t.Logf("not run, for %s is not here: %s", program, line)
		return ""
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	home := p.t.TempDir()
	cmd := exec.CommandContext(ctx, "sh", "-c", at.put(line))
	cmd.Env = append(slices.Concat(os.Environ(), at.env), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "MNEME_ADDR="+at.node, "HOME="+home, "XDG_CONFIG_HOME="+home)
	out, err := cmd.CombinedOutput()
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	good := ends[program]
	if good == nil || strings.Contains(line, "|") {
		good = []int{0}
	}
	answer := strings.TrimSpace(string(out))
	if !slices.Contains(good, code) || strings.Contains(line, "jq") && (answer == "" || answer == "null") {
		p.t.Errorf("$ %s\n%s\nends with %d", line, out, code)
	} else {
		p.t.Logf("$ %s\n%s", line, out)
	}
	return string(out)
}

// says checks that what was printed tells something.
func (p *prometheus) says(printed string, words ...string) {
	p.t.Helper()
	for _, w := range words {
		if !strings.Contains(printed, w) {
			p.t.Errorf("nothing says %q:\n%s", w, printed)
		}
	}
}

// copied copies the files of a data directory, which may be in use: then the copy is what is
// left of a node that was killed.
func copied(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rest), 0o700)
		case !e.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rest), b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
