package eventlog_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/eventlog"
)

// checkCopy checks the copy of a server that runs, once.
func checkCopy(ctx context.Context, dir string) (damage *eventlog.CopyDamaged, read int64, err error) {
	c, err := eventlog.BeginCopyCheck(vfs.Default, dir)
	for more := true; more && damage == nil && err == nil; {
		var n int64
		more, n, damage, err = c.Step(ctx)
		read += n
	}
	return damage, read, err
}

// rotBlock flips a bit in the first half of a block of a server's stream, as it runs.
func rotBlock(t *testing.T, dir string) string {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "NODE", "streams", "*", "msgs", "1.blk"))
	must(t, err)
	if len(blocks) != 1 {
		t.Fatalf("the blocks are %v", blocks)
	}
	f, err := os.OpenFile(blocks[0], os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	b := make([]byte, 1)
	at := info.Size() / 3
	_, err = f.ReadAt(b, at)
	must(t, err)
	_, err = f.WriteAt([]byte{b[0] ^ 4}, at)
	must(t, err)
	return blocks[0]
}

// Copies are checked again and again while their servers write, roll and cut blocks: none is
// ever called damaged. A bit of one rots, and that one is, while it is written to.
func TestCopyThatIsWrittenIsNotDamaged(t *testing.T) {
	s := newServers(t, 3)
	st := s.stream(t, 0)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	var checking sync.WaitGroup
	passes := make([]int, len(s.dirs))
	for i, dir := range s.dirs {
		checking.Go(func() {
			for ctx.Err() == nil {
				damage, _, err := checkCopy(ctx, dir)
				switch {
				case err != nil && ctx.Err() != nil:
					return
				case err != nil || damage != nil:
					t.Errorf("%s while it is written to: %v, %v", s.names[i], damage, err)
					return
				}
				passes[i]++
			}
		})
	}
	// More than two blocks of large messages, and many small ones between.
	rng := rand.New(rand.NewPCG(1, 2))
	large := make([]byte, 400<<10)
	seq := uint64(0)
	for range 45 {
		for i := range large {
			large[i] = byte(rng.Uint32())
		}
		appendSure(t, st, large, seq)
		seq++
		for range 5 {
			appendSure(t, st, frame(seq+1), seq)
			seq++
		}
	}
	cancel()
	checking.Wait()
	for i, n := range passes {
		if n == 0 {
			t.Errorf("the copy of %s was never checked", s.names[i])
		}
	}

	blocks, err := filepath.Glob(filepath.Join(s.dirs[1], "jetstream", "NODE", "streams", "*", "msgs", "*.blk"))
	must(t, err)
	if len(blocks) < 3 {
		t.Errorf("only the blocks %v were written", blocks)
	}
	block := rotBlock(t, s.dirs[1])
	writing, stop := context.WithCancel(testContext(t))
	var writes sync.WaitGroup
	writes.Go(func() {
		for writing.Err() == nil {
			appendSure(t, st, bytes.Repeat(frame(seq+1), 100), seq)
			seq++
		}
	})
	damage, _, err := checkCopy(testContext(t), s.dirs[1])
	stop()
	writes.Wait()
	if err != nil || damage == nil || !strings.HasPrefix(damage.Error(), block+" does not check at ") || !damage.Still() {
		t.Errorf("a block that rotted: %v, %v", damage, err)
	}
	for _, i := range []int{0, 2} {
		if damage, read, err := checkCopy(testContext(t), s.dirs[i]); damage != nil || err != nil || read < 16<<20 {
			t.Errorf("%s: %v, %v, %d bytes were read", s.names[i], damage, err, read)
		}
	}
}
