package eventlog_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mneme/internal/eventlog"
)

// TestFlippedBitCostTheRestOfTheLog: of a log whose server was killed, everything
// behind one flipped bit in an old message was cut off, and no copy was kept.
func TestFlippedBitCostTheRestOfTheLog(t *testing.T) {
	const block, index = "msgs/1.blk", "msgs/index.db"
	whole := newStopped(t, t.TempDir())
	recordAt := func(b []byte, n int) (at, length int) {
		for {
			length = int(binary.LittleEndian.Uint32(b[at:]) &^ (1 << 31))
			if n--; n == 0 {
				return at, length
			}
			at += length
		}
	}
	inside := func(n, offset int) func([]byte) []byte {
		return func(b []byte) []byte {
			at, length := recordAt(b, n)
			return flip((at + (offset+length)%length) * 8)(b)
		}
	}
	lost := damagedFrames // not one of them
	for _, c := range []struct {
		name    string
		damage  []func([]byte) []byte
		missing []int
	}{
		{"nothing", nil, nil},
		{"in a message", []func([]byte) []byte{inside(7, 60)}, []int{7}},
		{"in a subject", []func([]byte) []byte{inside(7, 24)}, []int{7}},
		{"in a checksum", []func([]byte) []byte{inside(7, -3)}, []int{7}},
		{"in a sequence", []func([]byte) []byte{inside(7, 4)}, []int{7}},
		{"in a high byte of a sequence", []func([]byte) []byte{inside(7, 9)}, []int{7}},
		{"in a length", []func([]byte) []byte{inside(7, 0)}, []int{7}},
		{"in a high byte of a length", []func([]byte) []byte{inside(7, 2)}, []int{7}},
		{"in the first", []func([]byte) []byte{inside(1, 60)}, []int{1}},
		{"in two", []func([]byte) []byte{inside(7, 60), inside(12, 60)}, []int{7, 12}},
		{"in two that follow each other", []func([]byte) []byte{inside(7, 60), inside(8, 60)}, []int{7, 8}},
		{"in the last", []func([]byte) []byte{inside(damagedFrames, 60)}, []int{lost}},
		{"zeros over two", []func([]byte) []byte{func(b []byte) []byte {
			at, length := recordAt(b, 7)
			clear(b[at+10 : at+length+30])
			return b
		}}, []int{7, 8}},
	} {
		for _, stale := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stale index %v", c.name, stale), func(t *testing.T) {
				s := whole
				s.dir = filepath.Join(t.TempDir(), "killed")
				must(t, os.CopyFS(s.dir, os.DirFS(whole.dir)))
				if stale {
					s.edit(t, index, func(b []byte) []byte { return b[:len(b)-1] })
				} else {
					must(t, os.Remove(s.file(index)))
				}
				before, err := os.ReadFile(s.file(block))
				must(t, err)
				for _, damage := range c.damage {
					before = damage(before)
				}
				must(t, os.WriteFile(s.file(block), before, 0o600))
				srv := startServer(t, eventlog.ServerOptions{Dir: s.dir})
				st := openStream(t, srv, eventlog.StreamConfig{})
				for seq := range damagedFrames {
					_, err := st.Get(testContext(t), uint64(seq+1))
					if slices.Contains(c.missing, seq+1) != (err != nil) {
						t.Errorf("message %d: %v", seq+1, err)
					}
				}
				kind := kindOf(t, eventlog.Check(testContext(t), st, s.k.expect(s.id)))
				if (kind != "") != (len(c.missing) > 0) {
					t.Errorf("check found %q", kind)
				}
				kept, err := filepath.Glob(filepath.Join(s.dir, "damaged", "*"))
				must(t, err)
				if want := len(c.missing) > 0 && c.missing[0] != lost; (len(kept) > 0) != want {
					t.Errorf("copies: %v", kept)
				} else if want {
					if b, err := os.ReadFile(kept[0]); err != nil || string(b) != string(before) {
						t.Errorf("the copy differs: %v", err)
					}
				}
				if len(c.missing) > 0 {
					repairAndVerify(t, srv, st, s)
				}
			})
		}
	}
}
