package observability

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/node"
	"mneme/internal/peer/devca"
)

// TestFullDiskIsAlerted fills the disk of a node that runs, and frees it.
func TestFullDiskIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	d := cfg.FS.(*disk)
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()

	d.free.Store(600 * mib)
	p.fired("MnemeDiskLow")
	p.follow("MnemeDiskLow", at(n, cfg))

	d.free.Store(100 * mib)
	p.fired("MnemeDiskFull", "MnemeWritesStopped")
	refused := beside(200, func(int) int { return p.capture(n, "after") })
	if refused[http.StatusInsufficientStorage] != 200 {
		t.Fatalf("captures on a full disk: %v", refused)
	}
	p.fired("MnemeCapturesFail")
	for _, page := range []string{"MnemeDiskFull", "MnemeWritesStopped", "MnemeCapturesFail"} {
		p.says(p.follow(page, at(n, cfg)), "free some space")
	}

	d.free.Store(spacious)
	p.quiet("MnemeDiskLow", "MnemeDiskFull", "MnemeWritesStopped")
	p.captured(n, "there is room again")
	p.recovers()
}

// TestFullDiskAtTheStartIsAlerted starts a node that was killed, so that its state lacks the
// end of its log, on a disk that has no room to apply it.
func TestFullDiskAtTheStartIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	shut(t, open(t, cfg))
	n := open(t, cfg)
	for range 12 {
		p.captured(n, "memory of the harbour")
	}
	killed := filepath.Join(t.TempDir(), "data")
	copied(t, killed, cfg.DataDir)
	shut(t, n)
	cfg.DataDir = killed
	d := cfg.FS.(*disk)
	d.free.Store(100 * mib)
	n = p.opens(cfg)
	p.fired("MnemeNodeNotReady")
	p.says(p.follow("MnemeNodeNotReady", at(n, cfg)), "the state lacks", "free some space")
	d.free.Store(spacious)
	p.healthy()
}

// TestNodeThatIsGoneIsAlerted stops a node, has Prometheus not know of it any more, and starts
// it again.
func TestNodeThatIsGoneIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	n := p.opens(cfg)
	p.healthy()
	place := at(n, cfg)
	place.other = place.node
	shut(t, n)
	p.fired("MnemeNodeDown")
	p.follow("MnemeNodeDown", place)
	p.says(p.does("MnemeNodeDown", "memctl doctor --data-dir DIR", place), "all is well")
	p.forget("n1")
	p.fired("MnemeNotScraped")
	p.quiet("MnemeNodeDown")
	n = p.opens(cfg)
	p.follow("MnemeNotScraped", at(n, cfg))
	p.healthy()
}

func TestCertificateThatEndsIsAlerted(t *testing.T) {
	certs := devca.Options{Dir: t.TempDir(), Nodes: []string{"mneme"}, Use: devca.ForServers, Valid: time.Hour}
	if _, err := devca.Make(certs); err != nil {
		t.Fatal(err)
	}
	cfg, p := alone(t), watch(t)
	cfg.TLS = &node.TLSConfig{Cert: filepath.Join(certs.Dir, "mneme.crt"), Key: filepath.Join(certs.Dir, "mneme.key")}
	n := p.opens(cfg)
	p.fired("MnemeCertificateEnds", "MnemeCertificateEnded")
	place := at(n, cfg)
	place.cert, place.env = cfg.TLS.Cert, []string{"MNEME_TLS_CA=" + cfg.TLS.Cert}
	p.says(p.follow("MnemeCertificateEnds", place), "clients", "notAfter")

	renewed := certs
	renewed.Dir, renewed.Valid = t.TempDir(), 20*24*time.Hour
	if _, err := devca.Make(renewed); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mneme.key", "mneme.crt"} {
		if err := os.Rename(filepath.Join(renewed.Dir, name), filepath.Join(certs.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.quiet("MnemeCertificateEnds", "MnemeCertificateEnded")
	p.healthy()
}

func TestClockThatIsRefusedIsAlerted(t *testing.T) {
	var back atomic.Int64
	cfg, p := alone(t), watch(t)
	cfg.Now = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()
	back.Store(int64(2 * time.Hour))
	p.fired("MnemeClockRefused")
	p.follow("MnemeClockRefused", at(n, cfg))
	back.Store(0)
	p.quiet("MnemeClockRefused")
	p.captured(n, "the clock is right again")
	p.healthy()
}

// TestClockThatWentAheadIsAlerted: the machine slept for two days, so that its clock is further
// than the time since boot, and right all the same; an operator says so. Then the node starts
// with a clock that stands behind the last event, which nothing but time helps.
func TestClockThatWentAheadIsAlerted(t *testing.T) {
	var ahead atomic.Int64
	cfg, p := alone(t), watch(t)
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()
	ahead.Store(int64(48 * time.Hour))
	p.fired("MnemeClockRefused")
	p.follow("MnemeClockRefused", at(n, cfg))
	p.says(p.does("MnemeClockRefused", "memctl clock accept", at(n, cfg)), "writing goes on")
	p.quiet("MnemeClockRefused")
	p.captured(n, "of the day after tomorrow")
	shut(t, n)

	ahead.Store(0)
	n = p.opens(cfg)
	p.fired("MnemeClockRefused")
	p.says(p.does("MnemeClockRefused", "memctl clock accept", at(n, cfg)), "writes go on when it shows")
	ahead.Store(int64(49 * time.Hour))
	p.quiet("MnemeClockRefused")
	p.captured(n, "the clock has caught up")
	p.healthy()
}

// TestFloodOverNATSIsAlerted publishes faster than a node can refuse.
func TestFloodOverNATSIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()
	publishers := make([]*nats.Conn, 4)
	for i := range publishers {
		nc, err := nats.Connect(n.NATSURL())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		publishers[i] = nc
	}
	p.await("captures to be dropped", func() bool {
		beside(len(publishers), func(i int) int {
			for range 50_000 {
				if err := publishers[i].PublishRequest("mem.in.default.flood.capture", publishers[i].NewInbox(), []byte(`{"text":"x"}`)); err != nil {
					t.Error(err)
					break
				}
			}
			return 0
		})
		dropped, _ := p.value(n.HTTPURL(), "mneme_nats_dropped_total")
		return dropped > 0 || t.Failed()
	})
	p.fired("MnemeMessagesDropped")
	p.says(p.follow("MnemeMessagesDropped", at(n, cfg)), "overloaded")
	p.await("what was taken to be written", func() bool { items, _ := p.value(n.HTTPURL(), "mneme_queue_items"); return items == 0 })
	p.recovers()
	p.captured(n, "and it goes on")
}

// TestDiskThatFillsIsForecast has a node's disk fill steadily, and then stay as it is.
func TestDiskThatFillsIsForecast(t *testing.T) {
	cfg, p := alone(t), watch(t)
	d := cfg.FS.(*disk)
	d.free.Store(spacious)
	n := p.opens(cfg)
	p.healthy()
	fills, full := context.WithCancel(t.Context())
	var filling sync.WaitGroup
	defer filling.Wait()
	defer full()
	filling.Go(func() {
		every := time.NewTicker(pace / 4)
		defer every.Stop()
		for fills.Err() == nil {
			select {
			case <-every.C:
				d.free.Store(d.free.Load() - 10*mib)
			case <-fills.Done():
			}
		}
	})
	p.fired("MnemeDiskFills")
	p.quiet("MnemeDiskLow") // there is room yet
	p.follow("MnemeDiskFills", at(n, cfg))
	full()
	filling.Wait()
	p.recovers()
}

// TestMemoryNearTheLimitIsAlerted tells a node of a limit that it has nearly taken.
func TestMemoryNearTheLimitIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	var limit atomic.Uint64
	limit.Store(spacious)
	cfg.Process.MemoryLimit = limit.Load
	n := p.opens(cfg)
	p.healthy()
	taken, ok := p.value(n.HTTPURL(), "process_resident_memory_bytes")
	if !ok {
		t.Fatal("the node does not say how much memory it has taken")
	}
	limit.Store(uint64(taken))
	p.fired("MnemeMemoryHigh")
	p.follow("MnemeMemoryHigh", at(n, cfg))
	limit.Store(spacious)
	p.recovers()
}
