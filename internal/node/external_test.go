package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/api"
	"mneme/internal/eventlog"
	"mneme/internal/eventlog/natstest"
	"mneme/internal/events"
	"mneme/memory"
)

// outside keeps the log of a node on external servers.
func outside(s *natstest.Servers, cfg *Config) {
	cfg.NATSURL, cfg.External.Monitors = s.URL(), s.Monitors
	if cfg.Cluster != nil {
		cfg.Cluster.RouteAddr = ""
	}
}

// Three nodes keep one log on three external servers. They wait for them, and say so; any
// node takes writes; a node and a server may be lost, one after the other.
func TestClusterOnAnExternalNATS(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 3)
	tr := trioOf(t, func(_ int, cfg *Config) { outside(s, cfg) })
	for i := range s.Names {
		s.Stop(i)
	}
	var opening sync.WaitGroup
	for i := range tr.cfgs {
		opening.Go(func() { tr.open(i) })
	}
	await(t, "the node to say that it waits for the external NATS", func() bool {
		resp, err := http.Get("http://" + tr.cfgs[0].HTTPAddr + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(b), "waits for the external NATS") && !strings.Contains(string(b), natstest.NodePassword)
	})
	var starting sync.WaitGroup
	for i := range s.Names {
		starting.Go(func() { s.Up(t, i, "", "") })
	}
	starting.Wait()
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i := range tr.nodes {
		tr.writes(i, fmt.Sprintf("at-%d", i), "a memory of the harbour")
	}
	info, err := tr.nodes[0].served[shard0].stream.Info(t.Context())
	if err != nil || s.Number(info.Leader) < 0 {
		t.Errorf("the log is led by %q: %v", info.Leader, err)
	}
	if addr := tr.nodes[0].NATSURL(); strings.Contains(addr, natstest.NodePassword) || !strings.Contains(addr, s.Clients[2]) {
		t.Errorf("agents are sent to %s", addr)
	}
	tr.same()

	s.Stop(s.Number(info.Leader))
	tr.writes(0, "a-server-is-gone", "the log goes on")
	await(t, "doctor to say which server is gone", func() bool {
		checks := tr.nodes[1].doctor.checkServers(t.Context())
		return len(checks) == 1 && checks[0].State == "warn" && strings.Contains(checks[0].Detail, "not heard of: "+info.Leader) && strings.Contains(checks[0].Hint, info.Leader)
	})
	s.Up(t, s.Number(info.Leader), "", "")

	lead := tr.leader()
	shut(t, tr.nodes[lead])
	tr.nodes[lead] = nil
	other := (lead + 1) % 3
	tr.writes(other, "the-leader-is-gone", "another node leads")
	tr.open(lead)
	tr.writes(lead, "it-is-back", "and takes writes")
	tr.same()
	if n := countRecords(t, tr.nodes[other]); n != 6 {
		t.Errorf("%d records of 6", n)
	}
}

func countRecords(t *testing.T, n *Node) (count int) {
	t.Helper()
	err := n.served[shard0].reads.Export(t.Context(), memory.Access{Namespace: "default"}, func(l memory.ExportLine) error {
		count++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// One of three nodes takes what agents publish to external servers, the one that leads,
// also while the leadership goes around: what is sent until it is answered is there once.
// External servers give what is published to any node that subscribes.
func TestOneNodeTakesFromAnExternalNATS(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 3)
	tr := trioOf(t, func(_ int, cfg *Config) { outside(s, cfg) })
	tr.openAll()
	agent, err := nats.Connect(s.AgentsURL())
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	taken := func() (by []int) {
		for i, n := range tr.nodes {
			if n.front.bus.Load().Taking() {
				by = append(by, i)
			}
		}
		return by
	}
	await(t, "the node that leads to take, and no other", func() bool {
		by := taken()
		return len(by) == 1 && tr.nodes[by[0]].served[shard0].replica.Leads()
	})
	const all = 120
	for i := range all {
		if i%40 == 20 {
			to := (tr.leader() + 1) % 3
			if _, err := tr.nodes[to].operator.TransferLead(t.Context(), memory.TransferLead{Node: tr.id(to)}); err != nil {
				t.Logf("to %s: %v", tr.id(to), err) // a busy machine elects by itself
			}
		}
		await(t, "an answer", func() bool {
			msg := nats.NewMsg("mem.in.default.walker.capture")
			msg.Data, msg.Header = fmt.Appendf(nil, "step %d", i), nats.Header{nats.MsgIdHdr: {fmt.Sprintf("step-%d", i)}}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			m, err := agent.RequestMsgWithContext(ctx, msg)
			var ack struct{ Status memory.ItemStatus }
			return err == nil && json.Unmarshal(m.Data, &ack) == nil && (ack.Status == memory.StatusCreated || ack.Status == memory.StatusDuplicate)
		})
	}
	await(t, "one node to take", func() bool { return len(taken()) == 1 })
	tr.same()
	if n := countRecords(t, tr.nodes[0]); n != all {
		t.Errorf("%d records of %d", n, all)
	}
}

// A leader whose connections to the external NATS are cut, and nothing else, hands over to
// a node that reaches it; writes go on, also at the node that is cut off, which forwards.
func TestLeaderCutOffFromTheExternalNATSHandsOver(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 3)
	relays := make([][]*natstest.Relay, 3)
	tr := trioOf(t, func(i int, cfg *Config) {
		outside(s, cfg)
		for _, addr := range s.Clients {
			r := natstest.NewRelay(t, addr)
			relays[i] = append(relays[i], r)
			cfg.NATSURL = strings.Replace(cfg.NATSURL, addr, r.Addr, 1)
		}
	})
	tr.openAll()
	tr.writes(0, "before", "a memory of the harbour")
	lead := tr.leader()
	for _, r := range relays[lead] {
		r.Cut()
	}
	await(t, "another node to lead", func() bool { now := tr.leader(); return now != lead })
	tr.writes(lead, "during", "it forwards")
	tr.writes((lead+1)%3, "during-too", "it leads or forwards")
	for _, r := range relays[lead] {
		r.Heal()
	}
	tr.writes(lead, "after", "all is well")
	tr.same()
	if n := countRecords(t, tr.nodes[lead]); n != 4 {
		t.Errorf("%d records of 4", n)
	}
}

// What an external NATS lacks is said at the start, with the remedy.
func TestExternalNATSThatCannotKeepTheLog(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	start := func(change func(*Config)) error {
		cfg := quiet(t.TempDir())
		outside(s, &cfg)
		if change != nil {
			change(&cfg)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		n, err := Open(ctx, cfg)
		if err == nil {
			shut(t, n)
		}
		return err
	}
	for _, c := range []struct {
		name, old, now string
		change         func(*Config)
		says, hint     string
	}{
		{"no JetStream", "    jetstream: enabled\n", "", nil, "no JetStream", "memctl nats-config"},
		{"lazy", "sync_interval: always", "sync_interval: 1m", nil, `: sync_interval is not "always" on log-1: `, "restart them; --dev does without"},
		{"a single server for three copies", "", "", func(c *Config) { c.External.Replicas = 3 }, "single server", "--nats-replicas 1"},
		{"one stream", "jetstream: enabled", "jetstream: { max_streams: 1 }", nil, "needs 2", "max_streams"},
		{"little room", "jetstream: enabled", "jetstream: { max_file: 1000000 }", nil, "1000000 bytes", "max_file"},
		{"short streams", "jetstream: enabled", "jetstream: { disk_max_stream_bytes: 1000000 }", nil, "1000000 bytes", "disk_max_stream_bytes"},
		{"limits asked for", "jetstream: enabled", "jetstream: { max_bytes_required: true }", nil, "wants a limit", "max_bytes_required"},
		{"wrong password", "", "", func(c *Config) { c.NATSURL = strings.Replace(c.NATSURL, natstest.NodePassword, "hush", 1) }, "refuses the credentials", "--nats-url"},
		{"nobody asked", "", "", func(c *Config) { c.External.Monitors = nil }, "nobody to ask", "--nats-system-url; --dev does without"},
		{"monitor of nobody", "", "", func(c *Config) { c.External.Monitors = []string{"http://127.0.0.1:1"} }, "http://127.0.0.1:1 does not say how its server is: dial", "name the monitoring address of each"},
		{"no file", "", "", func(c *Config) { c.External.Access.CA = "/nowhere/ca.crt" }, "/nowhere/ca.crt", "--nats-ca"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.old != "" {
				s.Stop(0)
				s.Up(t, 0, c.old, c.now)
				defer func() {
					s.Stop(0)
					s.Up(t, 0, "", "")
				}()
			}
			err := start(c.change)
			var e *StartError
			if !errors.As(err, &e) || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) || strings.Contains(e.Message, "hush") {
				t.Errorf("%v, hint %q; want %q, hint %q", err, hintOf(e), c.says, c.hint)
			}
		})
	}
	if err := start(nil); err != nil {
		t.Fatal(err)
	}
	err := start(nil) // another data directory, and so another cluster
	var e *StartError
	if !errors.As(err, &e) || e.Kind != StartDamaged || !strings.Contains(e.Hint, "an account of a NATS is for one Mneme") {
		t.Errorf("two on one account: %v, hint %q", err, hintOf(e))
	}
}

func hintOf(e *StartError) string {
	if e == nil {
		return ""
	}
	return e.Hint
}

// Somebody deletes the stream of a cluster on an external NATS, and another cluster begins
// one there: nothing is written into that, nothing of it is read, and reads go on.
func TestStreamOnAnExternalNATSIsDeleted(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 3)
	tr := trioOf(t, func(_ int, cfg *Config) { outside(s, cfg) })
	tr.openAll()
	tr.writes(0, "before", "a memory of the harbour")
	r, err := eventlog.OpenExternal(t.Context(), eventlog.RemoteOptions{URL: s.URL(), MonitorURLs: s.Monitors})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	js, err := jetstream.New(r.Conn())
	if err != nil {
		t.Fatal(err)
	}
	name := events.StreamName(shard0, 0)
	if st, err := js.Stream(t.Context(), name); err != nil {
		t.Fatal(err)
	} else if err := st.Purge(t.Context()); err == nil {
		t.Error("the log can be purged")
	}
	if err := js.DeleteStream(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	refused := func() error {
		resp, err := tr.nodes[0].changes.Capture(t.Context(), "default", []memory.Capture{{Agent: "a", ID: "lost", Text: "x"}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
		if err == nil && resp.Results[0].Error != nil {
			e := resp.Results[0].Error
			return &memory.Error{Code: e.Code, Message: e.Detail}
		}
		return err
	}
	if err := refused(); err == nil {
		t.Error("a write is acknowledged without a log")
	}
	other := eventlog.StreamConfig{ClusterID: "another", Replicas: 3, Ref: events.StreamRef{Identity: "another"}}
	theirs, err := eventlog.OpenStream(t.Context(), r.Conn(), other)
	if err != nil {
		t.Fatal(err)
	}
	began := events.Envelope{Header: events.Header{Type: events.TypeLeaderBegan, Schema: events.TypeLeaderBegan.Schema()}}
	first := events.Frame{Term: 1, Seq: 1, Events: [][]byte{began.Encode()}}
	if err := theirs.Append(t.Context(), first.Encode(), 0); err != nil {
		t.Fatal(err)
	}
	awaitNil(t, "the nodes to say that the log is gone", func() error {
		err := refused()
		if memory.CodeOf(err) == memory.CodeLogDiverged {
			return nil
		}
		return fmt.Errorf("they say: %v", err)
	})
	if info, err := theirs.Info(t.Context()); err != nil || info.Last != 1 {
		t.Errorf("the other cluster's log holds %+v: %v", info, err)
	}
	// The next one that leads finds another cluster's stream from the start.
	tr.deposes(tr.leader())
	awaitNil(t, "that one to say so, too", func() error {
		if err := refused(); memory.CodeOf(err) != memory.CodeLogDiverged {
			return fmt.Errorf("it says: %v", err)
		}
		return nil
	})
	for i, n := range tr.nodes {
		if countRecords(t, n) != 1 {
			t.Errorf("node %d does not answer from its state", i)
		}
	}
	awaitNil(t, "a repair", func() error { // of the one that leads
		_, err := tr.nodes[tr.leader()].operator.RepairLog(t.Context(), nil)
		if after := refused(); after != nil { // the leadership may have gone elsewhere
			return fmt.Errorf("writes: %v; the repair: %v", after, err)
		}
		return nil
	})
	tr.writes(0, "after", "another memory of the harbour")
	tr.same()
	if info, err := theirs.Info(t.Context()); err != nil || info.Last != 1 {
		t.Errorf("the other cluster's log holds %+v after the repair: %v", info, err)
	}
	if err := theirs.Append(t.Context(), []byte("more of theirs"), 1); err != nil {
		t.Errorf("the other cluster's log takes nothing any more: %v", err)
	}
}

// Options that do not go together are refused.
func TestExternalOptionsThatCannotWork(t *testing.T) {
	cluster := &ClusterConfig{NodeID: "n1", PeerAddr: "10.0.0.1:8800", Join: []string{"10.0.0.1:8800"}, Certs: "certs", Expect: 3}
	for says, c := range map[string]Config{
		"":                       {NATSURL: "nats://a:1", Cluster: cluster},
		"none is named":          {External: ExternalNATS{SystemURL: "nats://a:1"}},
		"2 copies":               {NATSURL: "nats://a:1", External: ExternalNATS{Replicas: 2}},
		"needs its key":          {NATSURL: "nats://a:1", External: ExternalNATS{Access: NATSAccess{Cert: "a"}}},
		"two ways":               {NATSURL: "nats://a:1", External: ExternalNATS{Access: NATSAccess{Creds: "a", NKey: "b"}}},
		"no log servers to rout": {NATSURL: "nats://a:1", Cluster: &ClusterConfig{NodeID: "n1", RouteAddr: "10.0.0.1:6222"}},
	} {
		c.DataDir, c.Auth = "d", "off"
		c.setDefaults()
		if err := c.validate(); !strings.Contains(errorText(err), says) || (err == nil) != (says == "") {
			t.Errorf("want %q, got %v", says, err)
		}
	}
}
