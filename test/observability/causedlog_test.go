package observability

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/eventlog/natstest"
	"mneme/internal/node"
)

// TestLostEndOfTheLogIsAlerted puts an older copy of the log in the place of the present one.
func TestLostEndOfTheLogIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	n := p.opens(cfg)
	p.captured(n, "old")
	p.healthy()
	shut(t, n)
	log, older := filepath.Join(cfg.DataDir, "nats"), filepath.Join(t.TempDir(), "nats")
	if err := os.CopyFS(older, os.DirFS(log)); err != nil {
		t.Fatal(err)
	}
	n = open(t, cfg)
	for i := range 5 {
		p.captured(n, fmt.Sprintf("new %d", i))
	}
	shut(t, n)
	if err := os.RemoveAll(log); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(log, os.DirFS(older)); err != nil {
		t.Fatal(err)
	}
	n = p.opens(cfg)
	p.fired("MnemeLogDiverged", "MnemeWritesStopped")
	p.says(p.follow("MnemeWritesStopped", at(n, cfg)), "memctl log repair")
	p.says(p.follow("MnemeLogDiverged", at(n, cfg)), "suffix_lost") // it repairs
	p.healthy()
	p.captured(n, "and it goes on")
}

// TestRotOfTheLogIsAlerted turns a byte in the middle of the log over while the node runs,
// which only the reading of the whole log finds, once the server has forgotten the block.
func TestRotOfTheLogIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	cfg.ScrubEvery = 15 * time.Second
	n := p.opens(cfg)
	for i := range 100 {
		p.captured(n, fmt.Sprintf("memory %d of many", i))
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
	at3, b := info.Size()/3, []byte{0}
	if _, err := f.ReadAt(b, at3); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ 1}, at3); err != nil {
		t.Fatal(err)
	}
	p.fired("MnemeLogDamaged", "MnemeLogDiverged")
	p.follow("MnemeLogDamaged", at(n, cfg)) // it repairs
	p.healthy()
	p.captured(n, "and it goes on")
}

// TestLogThatIsNotReadIsAlerted starts a node again each eighteen hours that takes longer than
// that to read its log.
func TestLogThatIsNotReadIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	started := time.Now()
	cfg.ScrubEvery, cfg.ScrubRate = time.Millisecond, 1
	cfg.Now = p.now // the node's time passes, too
	cfg.Parts.SinceBoot = func() time.Duration { return p.now().Sub(started) }
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()
	for range 4 { // together three days: there are samples of then
		p.later(18 * time.Hour)
		shut(t, n)
		n = p.opens(cfg)
		p.captured(n, "and it goes on")
		p.scrape()
	}
	p.fired("MnemeLogNotRead")
	p.follow("MnemeLogNotRead", at(n, cfg))
	p.quiet("MnemeLogNotRead")
	p.healthy()
}

// external is a node whose log is on an external NATS, behind a relay.
type external struct {
	*prometheus
	node  *node.Node
	cfg   node.Config
	nats  *natstest.Servers
	relay *natstest.Relay
}

func onExternal(t *testing.T) *external {
	t.Helper()
	x := &external{prometheus: watch(t), nats: natstest.Start(t, 1), cfg: alone(t)}
	x.relay = natstest.NewRelay(t, x.nats.Clients[0])
	x.cfg.NATSURL, x.cfg.External.Monitors = "nats://mneme-node:"+natstest.NodePassword+"@"+x.relay.Addr, x.nats.Monitors
	x.node = x.opens(x.cfg)
	x.captured(x.node, "before")
	x.healthy()
	t.Cleanup(x.relay.Heal)
	return x
}

func TestForeignFramesAreAlerted(t *testing.T) {
	x := onExternal(t)
	nc, err := nats.Connect(x.nats.URL())
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
	x.captured(x.node, "after the foreign messages")
	x.fired("MnemeForeignFrames")
	x.follow("MnemeForeignFrames", at(x.node, x.cfg))
	nc.Close()
	x.recovers()
}

func TestLogThatDoesNotAnswerIsAlerted(t *testing.T) {
	x := onExternal(t)
	x.nats.Stop(0)
	x.fired("MnemeLogUnreachable")
	x.follow("MnemeLogUnreachable", at(x.node, x.cfg))
	x.nats.Up(t, 0, "", "")
	x.healthy()
	x.captured(x.node, "it connects again by itself")
}

// TestSlowLogIsAlerted holds what a node sends to its log for longer than a second, again and
// again.
func TestSlowLogIsAlerted(t *testing.T) {
	x := onExternal(t)
	for range 5 {
		x.relay.Cut()
		slow := make(chan int, 1)
		go func() { slow <- x.capture(x.node, "slow") }()
		time.Sleep(1500 * time.Millisecond) // so slow is the log
		x.relay.Heal()
		t.Logf("a capture: %d", <-slow)
	}
	x.fired("MnemeCapturesSlow")
	x.follow("MnemeCapturesSlow", at(x.node, x.cfg))
	x.speedsUp("MnemeCapturesSlow", func() { x.captured(x.node, "fast again") })
}

// speedsUp does something again and again until an alert is quiet that looks at the last
// minutes, which pass each time.
func (p *prometheus) speedsUp(name string, do func()) {
	p.t.Helper()
	p.later(time.Hour)
	p.await(name+" to be quiet", func() bool {
		for range 20 {
			do()
		}
		p.scrape()
		if len(p.active[name]) == 0 {
			return true
		}
		p.later(time.Hour)
		return false
	})
}

// TestQueueThatFillsIsAlerted sends more than the log takes, which is nothing for a while.
func TestQueueThatFillsIsAlerted(t *testing.T) {
	x := onExternal(t)
	x.relay.Cut()
	batch := make([]fields, 1000)
	for i := range batch {
		batch[i] = fields{"agent": "a", "text": "x"}
	}
	var flood = make(chan map[int]int, 1)
	go func() {
		flood <- beside(22, func(int) int { status, _ := x.ask(x.node, captures, batch); return status })
	}()
	x.fired("MnemeQueueFull")
	x.follow("MnemeQueueFull", at(x.node, x.cfg))
	x.relay.Heal()
	t.Logf("answers: %v", <-flood)
	x.quiet("MnemeQueueFull")
	x.recovers()
	x.captured(x.node, "and it goes on")
}
