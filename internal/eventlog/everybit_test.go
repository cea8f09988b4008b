package eventlog_test

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/events"
)

// farm is a stopped server with many small streams of the same shape, so that
// one start tries a bit in each of them.
type farm struct {
	dir     string
	streams []stopped
}

const (
	farmStreams = 60
	farmFirst   = 100 // shards, with names of the same length
)

func newFarm(t *testing.T, frames int) farm {
	t.Helper()
	f := farm{dir: t.TempDir()}
	s, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: f.dir, Addr: "127.0.0.1:0"})
	must(t, err)
	for i := range farmStreams {
		shard := uint16(farmFirst + i)
		st := openStream(t, s, eventlog.StreamConfig{Shard: shard})
		f.streams = append(f.streams, stopped{shard: shard, k: writeSmall(t, st, shard, frames), id: identityOf(t, st)})
	}
	must(t, s.Shutdown(context.Background()))
	return f
}

// writeSmall appends frames of one control event.
func writeSmall(t *testing.T, s eventlog.Stream, shard uint16, n int) *known {
	t.Helper()
	k := newKnown(eventlog.Tail{Shard: shard, Term: 3})
	for i := range n {
		e := events.Envelope{Header: events.Header{Type: events.TypeLeaderBegan, Schema: 1, Event: events.ID{byte(i)}, SealedAt: int64(i)}}
		must(t, k.append(t, s, e.Encode()))
	}
	return k
}

var everyBit = flag.Bool("everybit", false, "flip every bit, and not one of four")

// bitsOf are the bits [from, to) that are flipped in this run: one of four, from a random one
// on, or all.
func bitsOf(t *testing.T, from, to int) (bits []int) {
	t.Helper()
	step, first := 1, from
	if !*everyBit {
		step = 4
		first += rand.IntN(step)
		t.Logf("one bit of %d from %d on; all with -everybit", step, first)
	}
	for at := first; at < to; at += step {
		bits = append(bits, at)
	}
	return bits
}

// flipEach flips each of the bits of a file of the streams, one a stream, before or after
// the server starts, and returns those that were noticed.
func (f farm) flipEach(t *testing.T, file string, bits []int, running bool) (noticed []int) {
	t.Helper()
	for bits := range slices.Chunk(bits, farmStreams) {
		dir := filepath.Join(t.TempDir(), "farm")
		must(t, os.CopyFS(dir, os.DirFS(f.dir)))
		tried := f.streams[:len(bits)]
		edit := func() {
			for i, s := range tried {
				s.dir = dir
				s.edit(t, file, flip(bits[i]))
			}
		}
		if !running {
			edit()
		}
		srv, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: dir, Addr: "127.0.0.1:0"})
		if err != nil {
			t.Fatalf("bits %d to %d: %v", bits[0], bits[len(bits)-1], err)
		}
		if running {
			edit()
		}
		for i, s := range tried {
			s.dir = dir
			if flipNoticed(t, srv, openStream(t, srv, eventlog.StreamConfig{Shard: s.shard}), s, bits[i]) {
				noticed = append(noticed, bits[i])
			}
		}
		must(t, srv.Shutdown(context.Background()))
		must(t, os.RemoveAll(dir))
	}
	return noticed
}

// TestEveryBitOfAMessage flips bits all over one stored message. The length of its
// headers, which no checksum covers, used to make the log unreadable.
func TestEveryBitOfAMessage(t *testing.T) {
	const frames = 3
	f := newFarm(t, frames)
	s := f.streams[0]
	s.dir = f.dir
	block, err := os.ReadFile(s.file("msgs", "1.blk"))
	must(t, err)
	record := len(block) / frames * 8
	if len(block)%frames != 0 {
		t.Fatalf("the records of %d bytes are not of one size", len(block))
	}
	bits := bitsOf(t, record, 2*record)
	noticed := f.flipEach(t, "msgs/1.blk", bits, false)
	// Only what is mended does no harm: the 32 bits of the headers' length.
	mended := headersLength(block, record/8) * 8
	harmful := slices.DeleteFunc(bits, func(bit int) bool { return bit >= mended && bit < mended+32 })
	if !slices.Equal(noticed, harmful) {
		t.Errorf("%d bits did harm, want %d: %v instead of %v", len(noticed), len(harmful), noticed, harmful)
	}
}

// headersLength is where the length of the headers stands in a message that begins at a byte
// of a block.
func headersLength(block []byte, message int) int {
	return message + bytes.Index(block[message:], []byte("NATS/1.0")) - 4
}

// TestUnreadableAnswerIsDivergence: a length of headers that rots under a running
// server made it hand out what is no message, and every reader failed with an
// internal error. It is a divergence, and repair mends it.
func TestUnreadableAnswerIsDivergence(t *testing.T) {
	const frames = 3
	f := newFarm(t, frames)
	s := f.streams[0]
	s.dir = f.dir
	block, err := os.ReadFile(s.file("msgs", "1.blk"))
	must(t, err)
	at := headersLength(block, len(block)/frames) * 8
	bits := make([]int, 32)
	for i := range bits {
		bits[i] = at + i
	}
	if noticed := f.flipEach(t, "msgs/1.blk", bits, true); !slices.Equal(noticed, bits) {
		t.Errorf("%d of 32 flips were noticed", len(noticed))
	}
}

// TestEveryBitOfTheIndex flips bits all over the file in which the server keeps
// where its blocks and messages are. It has a checksum and can be made again
// from the blocks, so nothing may be lost.
func TestEveryBitOfTheIndex(t *testing.T) {
	f := newFarm(t, 3)
	s := f.streams[0]
	s.dir = f.dir
	fi, err := os.Stat(s.file("msgs", "index.db"))
	must(t, err)
	if lost := f.flipEach(t, "msgs/index.db", bitsOf(t, 0, int(fi.Size())*8), false); lost != nil {
		t.Errorf("flips of the index's bits %v lost messages", lost)
	}
}
