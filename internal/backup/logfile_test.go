package backup

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/internal/keyring"
)

// The bytes of version 3, as docs/formats.md has them.
func TestLogFileIsAsDescribed(t *testing.T) {
	var b bytes.Buffer
	after := Mark{Shard: 1, Seq: 41, Epoch: 2, Term: 3, Chain: events.Chain{31: 9}}
	for _, m := range []Mark{after, {}} {
		s, err := BeginSection(&b, events.ID{15: 7}, 2, m)
		if err == nil {
			err = s.Message(m.Seq+1, []byte("m"))
		}
		if err == nil {
			_, err = s.Close(m.Epoch, m.Term+1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	golden := filepath.Join("testdata", "log-3.hex")
	want, err := os.ReadFile(golden)
	if err != nil || hex.EncodeToString(b.Bytes()) != strings.TrimSpace(string(want)) {
		t.Errorf("%v\n%x", err, b.Bytes())
	}
	found, err := ReadLog(&b, func(uint16, uint64, []byte) error { return nil })
	if err != nil || len(found) != 2 || found[1].After != after || found[1].End.Seq != 42 || found[1].End.Term != 4 || found[0].End.Shard != 0 || found[1].Frames != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestMarks(t *testing.T) {
	marks := []Mark{{}, {Shard: 3, Seq: 1 << 40, Epoch: 4e9, Term: 7, Chain: events.Chain{1, 2, 3}}}
	got, err := ParseMarks(JoinMarks(marks))
	if err != nil || len(got) != 2 || got[1] != marks[1] {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"x", "0.1.2.3", "0.1.2.3.ff", "0.1.2.3." + strings.Repeat("F", 64), "+0.1.2.3." + strings.Repeat("f", 64), "70000.1.2.3." + strings.Repeat("f", 64), ","} {
		if m, err := ParseMarks(bad); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%q is read as %+v, %v", bad, m, err)
		}
	}
}

func FuzzReadLog(f *testing.F) {
	const c = "cccccccccccccccc"
	f.Add([]byte("MNEMELOG\x02\x00\x00\x00\x01" + c + strings.Repeat("\x00", 8+8+32+32)))
	f.Add([]byte("MNEMELOG\x02\x00\x00\x00\x01" + c + "\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff"))
	f.Add([]byte("MNEMELOG\x04"))
	var whole bytes.Buffer
	s, err := BeginSection(&whole, events.ID{}, 1, Mark{Seq: 5})
	if err == nil {
		err = s.Message(6, []byte("m"))
	}
	if err == nil {
		_, err = s.Close(1, 2)
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		last := map[uint16]uint64{}
		sections, err := ReadLog(bytes.NewReader(b), func(shard uint16, seq uint64, _ []byte) error { last[shard] = seq; return nil })
		for _, s := range sections {
			if s.Frames > 0 && s.End.Seq != last[s.After.Shard] || s.End.Seq-s.After.Seq != s.Frames {
				t.Errorf("%+v, the last was %d, %v", s, last[s.After.Shard], err)
			}
		}
		if err != nil && !errors.Is(err, ErrNotIntact) && !events.IsForeign(err) {
			t.Errorf("an error of no kind: %v", err)
		}
	})
}

func FuzzManifest(f *testing.F) {
	m := Manifest{ID: "20260301T030000Z-abcdef", Cluster: "c", Shards: []Range{{Position: "p0.0.1.0"}}}
	b, err := m.encode(&keyring.BackupHead{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"format":3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeManifest(m.ID, b)
		if err == nil {
			if again, err := got.encode(&keyring.BackupHead{}); err != nil || len(got.Shards) == 0 || len(again) == 0 {
				t.Errorf("%+v, %v", got, err)
			}
		} else if !errors.Is(err, ErrNotIntact) && !events.IsForeign(err) {
			t.Errorf("an error of no kind: %v", err)
		}
	})
}
