package observability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/node"
	"mneme/internal/peer/devca"
)

// TestLostMajorityIsAlerted ends two of three nodes and starts them again.
func TestLostMajorityIsAlerted(t *testing.T) {
	tr := newTrio(t, 240*time.Hour)
	p := tr.p
	tr.leader()
	p.fired("MnemeCertificateEnds") // of the nodes' own certificates
	p.says(p.follow("MnemeCertificateEnds", place{node: tr.place(0).node, cert: filepath.Join(tr.certs.Dir, "n1.crt")}), `"nodes"`)
	p.captured(tr.nodes[0], "before")
	p.healthy("MnemeCertificateEnds", "MnemeCertificateEnded")

	tr.shut(1, 2)
	p.fired("MnemeNodeDown", "MnemeShardWithoutLeader", "MnemeLogUnreachable")
	searches := beside(32, func(int) int {
		status, _ := p.search(tr.nodes[0], fields{"consistency": "linearizable"})
		return status
	})
	writes := beside(64, func(int) int { return p.capture(tr.nodes[0], "nobody takes it") })
	t.Logf("searches: %v, captures: %v", searches, writes)
	p.fired("MnemeSearchesFail", "MnemeCapturesFail")
	at := tr.place(0)
	for _, page := range []string{"MnemeShardWithoutLeader", "MnemeLogUnreachable", "MnemeSearchesFail", "MnemeCapturesFail"} {
		p.follow(page, at)
	}
	tr.open(1, 2)
	tr.leader()
	p.await("writes to go on", func() bool { return p.capture(tr.nodes[0], "a majority is back") == http.StatusOK })
	p.recovers("MnemeCertificateEnds", "MnemeCertificateEnded")

	// New certificates of the same authority.
	renewed := tr.certs
	renewed.Valid = 60 * 24 * time.Hour
	if _, err := devca.Make(renewed); err != nil {
		t.Fatal(err)
	}
	for i := range tr.ids {
		p.run("memctl reload", tr.place(i))
	}
	p.healthy()
}

// TestMissingNodeIsAlerted ends one of three nodes, whose target goes with it, as that of a pod does.
func TestMissingNodeIsAlerted(t *testing.T) {
	tr := newTrio(t, 60*24*time.Hour)
	p := tr.p
	lead := tr.leader()
	p.captured(tr.nodes[lead], "before")
	p.healthy()
	gone, url := (lead+1)%3, p.targets[tr.ids[(lead+1)%3]]
	tr.shut(gone)
	p.forget(tr.ids[gone])
	p.fired("MnemeNodeMissing")
	p.quiet("MnemeNodeDown") // which cannot see it
	p.says(p.follow("MnemeNodeMissing", tr.place(lead)), tr.ids[gone])
	p.fired("MnemeLogCopyMissing")
	p.says(p.follow("MnemeLogCopyMissing", tr.place(lead)), "2 of 3 are whole")
	p.targets[tr.ids[gone]] = url
	tr.open(gone)
	p.recovers()
}

// TestLeaderThatMovesIsAlerted moves the leadership to and fro.
func TestLeaderThatMovesIsAlerted(t *testing.T) {
	tr := newTrio(t, 60*24*time.Hour)
	p := tr.p
	lead := tr.leader()
	p.captured(tr.nodes[0], "before")
	p.healthy()
	for round := range 8 {
		next := (lead + 1 + round) % 3
		tr.transfer(next)
		p.scrape()
	}
	p.fired("MnemeLeaderChanges")
	p.follow("MnemeLeaderChanges", tr.place(0))
	lead = tr.leader()
	p.does("MnemeLeaderChanges", "memctl cluster drain NODE", tr.place(lead))
	p.await("another node to lead", func() bool { return tr.leader() != lead })
	p.recovers()
}

// transfer has a node lead, as memctl cluster transfer does.
func (tr *trio) transfer(to int) {
	t := tr.p.t
	t.Helper()
	c := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", tr.cfgs[to].AdminSocket)
	}}}
	give := time.Now().Add(patience)
	for {
		resp, err := c.Post("http://localhost/v1/admin/cluster/transfer", "application/json", bytes.NewBufferString(`{"node":"`+tr.ids[to]+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(give) {
			t.Fatalf("%s does not lead: %s", tr.ids[to], body)
		}
		time.Sleep(pace) // a transfer right behind another one may be refused
	}
}

// TestReplicaThatIsCutOffIsAlerted holds what the others send to a node until it is a
// thousand frames behind.
func TestReplicaThatIsCutOffIsAlerted(t *testing.T) {
	tr := newTrio(t, 60*24*time.Hour)
	p := tr.p
	lead := tr.leader()
	p.captured(tr.nodes[lead], "before")
	p.healthy()
	behind := (lead + 1) % 3
	tr.relays[behind].Cut()
	for i := 0; len(p.active["MnemeReplicaBehind"]) == 0; i++ {
		for k := range 100 { // each is a frame
			if status := p.capture(tr.nodes[lead], fmt.Sprintf("memory %d of round %d", k, i)); status != http.StatusOK {
				lead = tr.leader()
			}
		}
		if p.scrape(); i == 200 {
			t.Fatal("it is not behind")
		}
	}
	p.fired("MnemeReplicaBehind")
	p.follow("MnemeReplicaBehind", tr.place(behind))
	tr.relays[behind].Heal()
	p.quiet("MnemeReplicaBehind")
	p.recovers()
}

// TestStateBuiltAnewIsAlerted damages the tables of a node's state, which it builds again from
// the others, and removes what was set aside.
func TestStateBuiltAnewIsAlerted(t *testing.T) {
	tr := newTrio(t, 60*24*time.Hour)
	p := tr.p
	lead := tr.leader()
	for range 20 {
		p.captured(tr.nodes[lead], "a memory of the harbour")
	}
	p.healthy()
	hurt := (lead + 1) % 3
	tr.shut(hurt)
	tables, err := filepath.Glob(filepath.Join(tr.cfgs[hurt].DataDir, "shards", "0", "state", "gen-*", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("%v, %v", tables, err)
	}
	for _, table := range tables {
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] ^= 0x55
		}
		if err := os.WriteFile(table, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tr.open(hurt)
	p.fired("MnemeStateBuiltAnew")
	if said := p.follow("MnemeStateBuiltAnew", tr.place(hurt)); !strings.Contains(said, "shards/0/state.damaged-1") {
		t.Fatalf("the page does not find what was set aside: %q", said)
	}
	p.run("memctl --addr http://NODE:8787 aside remove --older-than 0s --yes", tr.place(hurt))
	p.healthy()
}

// TestRotOfAnOwnCopyIsAlerted flips a bit in the copy of the log of a node that does not lead,
// while it runs and another one is away; then that one comes back, and the node takes its copy
// from the others.
func TestRotOfAnOwnCopyIsAlerted(t *testing.T) {
	tr := newTrio(t, 60*24*time.Hour)
	p := tr.p
	lead := tr.leader()
	for range 20 {
		p.captured(tr.nodes[lead], "a memory of the harbour")
	}
	p.healthy()
	hurt, away := (lead+1)%3, (lead+2)%3
	tr.shut(away)
	blocks, err := filepath.Glob(filepath.Join(tr.cfgs[hurt].DataDir, "nats", "jetstream", "*", "streams", "*", "msgs", "1.blk"))
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
	b := []byte{0}
	if _, err = f.ReadAt(b, info.Size()/3); err == nil {
		_, err = f.WriteAt([]byte{b[0] ^ 1}, info.Size()/3)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.says(p.run("memctl --addr http://NODE:8787 log verify", tr.place(hurt)), "damaged", "1.blk does not check at")
	p.fired("MnemeLogCopyDamaged")
	p.await("the node to say for what it waits", func() bool {
		return strings.Contains(p.run("memctl --addr http://NODE:8787 status", tr.place(hurt)), "not taken from the others yet: "+tr.ids[away]+" does not answer")
	})
	p.says(p.follow("MnemeLogCopyDamaged", tr.place(hurt)), "1.blk does not check at", tr.ids[away]+" does not answer", "its copy of the log is damaged")
	tr.open(away)
	select {
	case <-tr.nodes[hurt].Done():
	case <-time.After(patience):
		t.Fatal("the node keeps its copy")
	}
	if err := tr.nodes[hurt].Err(); !errors.Is(err, node.ErrRestart) {
		t.Fatal(err)
	}
	tr.shut(hurt)
	tr.open(hurt) // as memnode does
	p.fired("MnemeNodeBuiltAnew")
	p.quiet("MnemeLogCopyDamaged")
	p.says(p.follow("MnemeNodeBuiltAnew", tr.place(hurt)), filepath.Join("aside", tr.ids[hurt]+"-"))
	p.run("memctl --addr http://NODE:8787 aside remove --older-than 0s --yes", tr.place(hurt))
	p.recovers()
}

// TestNodeThatIsAwayHoldsUpNoErasure: those that are there clean their files, and the other one
// does when it is back.
func TestNodeThatIsAwayHoldsUpNoErasure(t *testing.T) {
	tr := newTrio(t, 60*24*time.Hour)
	p, lead := tr.p, tr.leader()
	if status, answer := p.ask(tr.nodes[lead], "/v1/namespaces", fields{"name": "gone"}); status/100 != 2 {
		t.Fatalf("%d %s", status, answer)
	}
	p.healthy()
	away := (lead + 1) % 3
	tr.shut(away)
	p.run("memctl --addr http://NODE:8787 namespace delete gone --yes", tr.place(lead))
	erased := func(which ...int) func() bool {
		return func() bool {
			return !slices.ContainsFunc(which, func(i int) bool {
				is, _ := p.value(tr.nodes[i].HTTPURL(), "mneme_erasing")
				return is != 0
			})
		}
	}
	p.await("the erasure to end", erased(lead, 3-lead-away))
	p.later(2 * time.Hour) // it would be stuck by now
	p.quiet("MnemeErasureStuck")
	tr.open(away)
	p.await("the erasure to end on all", erased(0, 1, 2))
	p.recovers()
}
