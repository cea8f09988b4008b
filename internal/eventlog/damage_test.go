package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"mneme/internal/eventlog"
)

const damagedFrames = 20

// stopped is a stopped server's directory with a log, and what state knows.
type stopped struct {
	dir, id string
	k       *known
}

func (s stopped) file(parts ...string) string {
	return filepath.Join(append([]string{s.dir, "jetstream", "$G", "streams", "mneme-0"}, parts...)...)
}

func newStopped(t *testing.T, dir string) stopped {
	t.Helper()
	s, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: dir, Addr: "127.0.0.1:0"})
	must(t, err)
	st := openStream(t, s, eventlog.StreamConfig{})
	out := stopped{dir: dir, k: write(t, st, damagedFrames), id: identityOf(t, st)}
	must(t, s.Shutdown(context.Background()))
	return out
}

// edit changes a file of the stream.
func (s stopped) edit(t *testing.T, name string, change func([]byte) []byte) {
	t.Helper()
	path := s.file(name)
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, change(b), 0o600))
}

func flip(bit int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[bit/8%len(b)] ^= 1 << (bit % 8)
		return b
	}
}

func cut(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:len(b)-n] } }

// TestDamagedFiles damages the files of a stopped server. Every damage has to
// be noticed, and repair has to bring everything back.
func TestDamagedFiles(t *testing.T) {
	const block, index = "msgs/1.blk", "msgs/index.db"
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, s stopped)
		kind   string // of Check
	}{
		{"tail cut", func(t *testing.T, s stopped) { s.edit(t, block, cut(700)) }, "gap"},
		{"tail cut, no index", func(t *testing.T, s stopped) {
			s.edit(t, block, cut(700))
			must(t, os.Remove(s.file(index)))
		}, "suffix_lost"},
		{"block gone", func(t *testing.T, s stopped) { must(t, os.Remove(s.file(block))) }, "gap"},
		{"flip in the last message", func(t *testing.T, s stopped) {
			s.edit(t, block, func(b []byte) []byte { return flip((len(b) - 40) * 8)(b) })
		}, "gap"},
		{"flip in the last message, no index", func(t *testing.T, s stopped) {
			s.edit(t, block, func(b []byte) []byte { return flip((len(b) - 40) * 8)(b) })
			must(t, os.Remove(s.file(index)))
		}, "suffix_lost"},
		{"stream wiped", func(t *testing.T, s stopped) { must(t, os.RemoveAll(s.file())) }, "identity"},
		{"index damaged", func(t *testing.T, s stopped) { s.edit(t, index, flip(100)) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStopped(t, t.TempDir())
			c.damage(t, s)
			srv := startServer(t, eventlog.ServerOptions{Dir: s.dir})
			st := openStream(t, srv, eventlog.StreamConfig{})
			if got := kindOf(t, eventlog.Check(testContext(t), st, s.k.expect(s.id))); got != c.kind {
				t.Errorf("check found %q, want %q", got, c.kind)
			}
			repairAndVerify(t, st, s)
		})
	}
}

func repairAndVerify(t *testing.T, st *eventlog.JetStream, s stopped) {
	t.Helper()
	must(t, eventlog.Repair(testContext(t), st, 1, s.k.frame, damagedFrames, eventlog.RepairOptions{Recreate: true}))
	must(t, eventlog.Check(testContext(t), st, s.k.expect(identityOf(t, st))))
	r, err := eventlog.Scrub(testContext(t), st, s.k.tails[0], s.k.hashes, nil)
	must(t, err)
	if r.Tail != s.k.last() || r.ProblemCount != 0 {
		t.Errorf("after repair: %+v", r)
	}
}

// TestDamagedMeta: the server skips a stream whose description is damaged, and
// would let a new one take its place.
func TestDamagedMeta(t *testing.T) {
	s := newStopped(t, t.TempDir())
	s.edit(t, "meta.inf", flip(999))
	_, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: s.dir, Addr: "127.0.0.1:0", Logger: logTo(t)})
	var d *eventlog.DamageError
	if !errors.Is(err, eventlog.ErrStoreDamaged) || !errors.As(err, &d) || len(d.Streams) != 1 || d.Streams[0] != "mneme-0" {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.file("msgs", "1.blk")); err != nil {
		t.Error(err)
	}
}

// TestSingleBitFlips: nats-server ran out of memory at start after one flipped
// bit in a record's length. Whatever bit flips, the server starts, the scrub
// finds it (or nothing is lost), and repair brings everything back.
func TestSingleBitFlips(t *testing.T) {
	template := newStopped(t, t.TempDir())
	size := int64(0)
	if fi, err := os.Stat(template.file("msgs", "1.blk")); err == nil {
		size = fi.Size()
	}
	record := int(size) / damagedFrames
	var bits []int
	for b := 0; b < 22*8; b += 3 { // all over a record's header
		bits = append(bits, 10*record*8+b)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		bits = append(bits, rng.IntN(int(size)*8))
	}
	if testing.Short() {
		bits = bits[:20]
	}
	found := 0
	for _, bit := range bits {
		if flipOne(t, template, bit) {
			found++
		}
	}
	if found < len(bits)*9/10 {
		t.Errorf("only %d of %d flips did any harm", found, len(bits))
	}
}

// flipOne reports whether the flip was noticed.
func flipOne(t *testing.T, template stopped, bit int) bool {
	t.Helper()
	s := template
	s.dir = filepath.Join(t.TempDir(), fmt.Sprint(bit))
	must(t, os.CopyFS(s.dir, os.DirFS(template.dir)))
	s.edit(t, "msgs/1.blk", flip(bit))
	srv, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: s.dir, Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatalf("bit %d: %v", bit, err)
	}
	defer func() { must(t, srv.Shutdown(context.Background())) }()
	st := openStream(t, srv, eventlog.StreamConfig{})
	r, err := eventlog.Scrub(testContext(t), st, s.k.tails[0], s.k.hashes, nil)
	must(t, err)
	check := eventlog.Check(testContext(t), st, s.k.expect(s.id))
	noticed := r.Diverged() != nil || check != nil
	if !noticed && (r.Tail != s.k.last() || r.Frames != damagedFrames) {
		t.Errorf("bit %d: harm went unnoticed: %+v", bit, r)
	}
	repairAndVerify(t, st, s)
	return noticed
}
