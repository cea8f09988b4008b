package observability

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"mneme/internal/embed"
	"mneme/internal/eventlog"
	"mneme/internal/eventlog/natstest"
	"mneme/internal/node"
	"mneme/internal/peer/devca"
	"mneme/internal/testaddr"
)

func TestMain(m *testing.M) {
	eventlog.ShortenElections()
	os.Exit(m.Run())
}

// patience bounds what would otherwise hang.
const patience = 2 * time.Minute

// Alerts are caused in seconds, not in minutes: a scrape is made each pace instead of each
// minute, and how long an expression has to hold shrinks with that.
const (
	pace  = 100 * time.Millisecond
	hurry = float64(pace) / float64(time.Minute)
)

// prometheus scrapes nodes as the real one does: what is not shown any more ends at once.
type prometheus struct {
	t       *testing.T
	of      *series
	targets map[string]string // instance → URL of its metrics
	last    map[string]map[string]labels.Labels
	from    time.Time
	client  *http.Client
}

func watch(t *testing.T) *prometheus {
	return &prometheus{t: t, of: newSeries(), targets: map[string]string{}, last: map[string]map[string]labels.Labels{}, from: time.Now(),
		client: &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
}

func (p *prometheus) scrape() {
	now := time.Now()
	for instance, url := range p.targets {
		samples, err := p.read(url + "/metrics")
		up := 1.0
		if err != nil {
			up = 0
		}
		there := map[string]labels.Labels{}
		put := func(of labels.Labels, v float64) {
			there[of.String()] = of
			p.of.put(of, now, v)
		}
		for _, s := range samples {
			b := labels.NewBuilder(labels.EmptyLabels())
			for name, v := range s.Metric {
				b.Set(string(name), string(v))
			}
			b.Set("job", "mneme").Set("instance", instance)
			put(b.Labels(), float64(s.Value))
		}
		put(labels.FromStrings(labels.MetricName, "up", "job", "mneme", "instance", instance), up)
		for key, of := range p.last[instance] {
			if _, ok := there[key]; !ok {
				p.of.put(of, now, math.Float64frombits(value.StaleNaN))
			}
		}
		p.last[instance] = there
	}
}

func (p *prometheus) read(url string) (out model.Vector, err error) {
	resp, err := p.client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	dec := &expfmt.SampleDecoder{Dec: expfmt.NewDecoder(resp.Body, expfmt.ResponseFormat(resp.Header)), Opts: &expfmt.DecodeOptions{Timestamp: model.Now()}}
	for {
		var v model.Vector
		if err := dec.Decode(&v); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, v...)
	}
}

// fired scrapes until an alert fires.
func (p *prometheus) fired(names ...string) {
	p.t.Helper()
	give := time.Now().Add(patience)
	for _, name := range names {
		r := alert(p.t, name)
		for {
			p.scrape()
			now := time.Now()
			// The expressions look at most an hour back, and nothing is older than the test.
			if fires(p.t, r, p.of, p.from, now, pace, hurry) {
				p.t.Logf("%s fires", name)
				break
			}
			if now.After(give) {
				p.t.Fatalf("%s does not fire: %s", name, r.expr)
			}
			time.Sleep(pace) // as Prometheus does between two scrapes
		}
	}
}

// quiet scrapes some times and finds that alerts do not fire.
func (p *prometheus) quiet(names ...string) {
	p.t.Helper()
	for range 5 {
		p.scrape()
		time.Sleep(pace)
	}
	for _, name := range names {
		if fires(p.t, alert(p.t, name), p.of, p.from, time.Now(), pace, 0) {
			p.t.Errorf("%s fires before anything was done", name)
		}
	}
}

func alone(t *testing.T) node.Config {
	return node.Config{DataDir: filepath.Join(t.TempDir(), "data"), HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", ReserveBytes: -1}
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

// do posts to a node and returns the status.
func (p *prometheus) do(url, body string) int {
	p.t.Helper()
	resp, err := p.client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func (p *prometheus) capture(n *node.Node, text string) int {
	p.t.Helper()
	return p.do(n.HTTPURL()+"/v1/namespaces/default/events", `{"agent":"a","text":"`+text+`"}`)
}

func TestFullDiskIsAlerted(t *testing.T) {
	cfg := alone(t)
	n := open(t, cfg)
	p := watch(t)
	p.targets["n1"] = n.HTTPURL()
	if status := p.capture(n, "before"); status != 200 {
		t.Fatal(status)
	}
	p.quiet("MnemeDiskLow", "MnemeDiskFull", "MnemeWritesStopped", "MnemeCapturesFail", "MnemeNodeDown", "MnemeNodeNotReady", "MnemeShardWithoutLeader")
	shut(t, n)
	p.fired("MnemeNodeDown")

	cfg.ReserveBytes = 1 << 60
	n = open(t, cfg)
	p.targets["n1"] = n.HTTPURL()
	p.fired("MnemeDiskFull", "MnemeWritesStopped")
	for range 200 {
		if status := p.capture(n, "after"); status != http.StatusInsufficientStorage {
			t.Fatalf("a capture on a full disk: %d", status)
		}
	}
	p.fired("MnemeCapturesFail")
	shut(t, n)

	var disk uint64
	for _, s := range mustRead(p, n, cfg) {
		if s.Metric[model.MetricNameLabel] == "mneme_disk_free_bytes" {
			disk = uint64(s.Value)
		}
	}
	cfg.ReserveBytes = int64(disk / 2)
	n = open(t, cfg)
	p.targets["n1"] = n.HTTPURL()
	p.fired("MnemeDiskLow")
}

// mustRead reads the metrics of a node that is opened for that alone.
func mustRead(p *prometheus, _ *node.Node, cfg node.Config) model.Vector {
	p.t.Helper()
	cfg.ReserveBytes = -1
	n := open(p.t, cfg)
	defer shut(p.t, n)
	v, err := p.read(n.HTTPURL() + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func TestCertificateThatEndsIsAlerted(t *testing.T) {
	certs := t.TempDir()
	if _, err := devca.Make(devca.Options{Dir: certs, Nodes: []string{"mneme"}, Use: devca.ForServers, Valid: time.Hour}); err != nil {
		t.Fatal(err)
	}
	cfg := alone(t)
	cfg.TLS = &node.TLSConfig{Cert: filepath.Join(certs, "mneme.crt"), Key: filepath.Join(certs, "mneme.key")}
	n := open(t, cfg)
	p := watch(t)
	p.targets["n1"] = n.HTTPURL()
	p.fired("MnemeCertificateEnds", "MnemeCertificateEnded")
}

func TestClockThatIsRefusedIsAlerted(t *testing.T) {
	var back atomic.Int64
	cfg := alone(t)
	cfg.Now = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	n := open(t, cfg)
	p := watch(t)
	p.targets["n1"] = n.HTTPURL()
	if status := p.capture(n, "before"); status != 200 {
		t.Fatal(status)
	}
	p.quiet("MnemeClockRefused")
	back.Store(int64(2 * time.Hour))
	p.fired("MnemeClockRefused")
}

// TestLostEndOfTheLogIsAlerted puts an older copy of the log in the place of the present one.
func TestLostEndOfTheLogIsAlerted(t *testing.T) {
	cfg := alone(t)
	n := open(t, cfg)
	p := watch(t)
	p.targets["n1"] = n.HTTPURL()
	p.capture(n, "old")
	p.quiet("MnemeLogDiverged")
	shut(t, n)
	log, older := filepath.Join(cfg.DataDir, "nats"), filepath.Join(t.TempDir(), "nats")
	if err := os.CopyFS(older, os.DirFS(log)); err != nil {
		t.Fatal(err)
	}
	n = open(t, cfg)
	for i := range 5 {
		p.capture(n, fmt.Sprintf("new %d", i))
	}
	shut(t, n)
	if err := os.RemoveAll(log); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(log, os.DirFS(older)); err != nil {
		t.Fatal(err)
	}
	n = open(t, cfg)
	p.targets["n1"] = n.HTTPURL()
	p.fired("MnemeLogDiverged", "MnemeWritesStopped")
}

// TestRotOfTheLogIsAlerted turns a byte in the middle of the log over while the node runs,
// which only the reading of the whole log finds, once the server has forgotten the block.
func TestRotOfTheLogIsAlerted(t *testing.T) {
	cfg := alone(t)
	cfg.ScrubEvery = 15 * time.Second
	n := open(t, cfg)
	p := watch(t)
	p.targets["n1"] = n.HTTPURL()
	for i := range 100 {
		p.capture(n, fmt.Sprintf("memory %d of many", i))
	}
	blocks, err := filepath.Glob(filepath.Join(cfg.DataDir, "nats", "jetstream", "*", "streams", "*", "msgs", "1.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("blocks of the log: %v, %v", blocks, err)
	}
	f, err := os.OpenFile(blocks[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	at, b := info.Size()/3, []byte{0}
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ 1}, at); err != nil {
		t.Fatal(err)
	}
	p.fired("MnemeLogDamaged", "MnemeLogDiverged")
}

func TestExternalLogIsAlerted(t *testing.T) {
	s := natstest.Start(t, 1)
	cfg := alone(t)
	cfg.NATSURL, cfg.External.Monitors = s.URL(), s.Monitors
	n := open(t, cfg)
	p := watch(t)
	p.targets["n1"] = n.HTTPURL()
	p.capture(n, "before")
	p.quiet("MnemeForeignFrames", "MnemeLogUnreachable")
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := js.Publish("mem.log.0", []byte("not a frame")); err != nil {
			t.Fatal(err)
		}
	}
	p.capture(n, "after the foreign messages")
	p.fired("MnemeForeignFrames")
	s.Stop(0)
	p.fired("MnemeLogUnreachable")
}

func TestEmbedderThatFailsIsAlerted(t *testing.T) {
	var fails atomic.Bool
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Input []string }
		if fails.Load() || json.NewDecoder(r.Body).Decode(&req) != nil {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		var out struct {
			Data []any `json:"data"`
		}
		for i := range req.Input {
			out.Data = append(out.Data, map[string]any{"index": i, "embedding": []float64{0.6, 0.8, 0}})
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	defer model.Close()
	cfg := alone(t)
	cfg.Embedder = embed.Config{Provider: embed.ProviderOpenAI, Model: "m", BaseURL: model.URL + "/v1", MaxRetries: -1}
	n := open(t, cfg)
	p := watch(t)
	p.targets["n1"] = n.HTTPURL()
	p.capture(n, "before")
	p.quiet("MnemeEmbedderFails")
	fails.Store(true)
	p.capture(n, "after")
	p.fired("MnemeEmbedderFails")
}

// TestClusterIsAlerted moves the leadership to and fro, lets a node miss a lot, and loses the
// majority.
func TestClusterIsAlerted(t *testing.T) {
	certs, addrs, ids := t.TempDir(), testaddr.Reserve(t, 9), []string{"n1", "n2", "n3"}
	if _, err := devca.Make(devca.Options{Dir: certs, Nodes: ids, Valid: 240 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "mneme") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	nodes, cfgs := make([]*node.Node, 3), make([]node.Config, 3)
	var opening sync.WaitGroup
	p := watch(t)
	for i, id := range ids {
		cfg := alone(t)
		cfg.HTTPAddr, cfg.AdminSocket = addrs[3*i], filepath.Join(sockets, id)
		cfg.Cluster = &node.ClusterConfig{NodeID: id, PeerAddr: addrs[3*i+1], RouteAddr: addrs[3*i+2], Join: []string{addrs[1], addrs[4], addrs[7]}, Certs: certs, Expect: 3}
		cfgs[i] = cfg
		opening.Go(func() {
			n, err := node.Open(t.Context(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			nodes[i] = n
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		var closing sync.WaitGroup
		for _, n := range nodes {
			closing.Go(func() { shut(t, n) })
		}
		closing.Wait()
	})
	for i, id := range ids {
		p.targets[id] = nodes[i].HTTPURL()
	}
	p.fired("MnemeCertificateEnds") // of the nodes' own certificates
	p.quiet("MnemeShardWithoutLeader", "MnemeNodeDown", "MnemeLogUnreachable", "MnemeReplicaBehind")

	for round := range 8 {
		transfer(t, cfgs[round%3].AdminSocket, ids[(round+1)%3])
		p.scrape()
	}
	p.fired("MnemeLeaderChanges")

	var closing sync.WaitGroup
	for _, n := range nodes[1:] {
		closing.Go(func() { shut(t, n) })
	}
	closing.Wait()
	p.fired("MnemeNodeDown", "MnemeShardWithoutLeader")
}

// transfer has a node lead, as memctl cluster transfer does.
func transfer(t *testing.T, socket, to string) {
	t.Helper()
	c := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	give := time.Now().Add(patience)
	for {
		resp, err := c.Post("http://localhost/v1/admin/cluster/transfer", "application/json", bytes.NewBufferString(`{"node":"`+to+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(give) {
			t.Fatalf("%s does not lead: %s", to, body)
		}
		time.Sleep(pace) // a transfer right behind another one may be refused
	}
}
