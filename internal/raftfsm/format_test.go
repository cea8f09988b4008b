package raftfsm

import (
	"bytes"
	"encoding/hex"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
)

func goldenEntry() *raft.Log {
	return &raft.Log{Index: 7, Term: 3, Type: raft.LogCommand, Data: []byte("hello"), Extensions: []byte{1}}
}

func TestFrameGoldenBytes(t *testing.T) {
	if got := hex.EncodeToString(plain.sealEntry(goldenEntry())); got != "01fb2b354c68656c6c6f" {
		t.Errorf("entry frame %s", got)
	}
	if got := hex.EncodeToString(plain.sealValue([]byte("CurrentTerm"), []byte{0, 0, 0, 0, 0, 0, 0, 9})); got != "012e0b14b60000000000000009" {
		t.Errorf("value frame %s", got)
	}
	if got := hex.EncodeToString(vote{term: 9, candidate: []byte("n1")}.encode()); got != "00000000000000096e31" {
		t.Errorf("vote %s", got)
	}
}

func goldenManifest() *manifest {
	return &manifest{
		Index: 9, Term: 2, AppliedIndex: 8, AppliedTerm: 2, Mark: 5, ConfIndex: 1,
		Servers: []memberServer{{ID: "n1", Address: "a1"}},
		Files:   []manifestFile{{Name: "sub/f", Size: 3, SHA256: hex.EncodeToString(bytes.Repeat([]byte{0xab}, 32))}},
	}
}

func TestManifestGoldenBytes(t *testing.T) {
	b, err := goldenManifest().encode()
	if err != nil {
		t.Fatal(err)
	}
	want := "MSNP\x01\xfc\x00\x00\x00" + `{"index":9,"term":2,"applied_index":8,"applied_term":2,"mark":5,"configuration_index":1,` +
		`"servers":[{"suffrage":0,"id":"n1","address":"a1"}],` +
		`"files":[{"name":"sub/f","size":3,"sha256":"abababababababababababababababababababababababababababababababab"}]}`
	if got := string(b[:len(b)-documentSum]); got != want {
		t.Errorf("manifest\n%q\nwant\n%q", got, want)
	}
	m, err := decodeManifest(b)
	if err != nil || !reflect.DeepEqual(m, goldenManifest()) {
		t.Fatalf("%+v %v", m, err)
	}
}

func TestManifestRefuses(t *testing.T) {
	sum := hex.EncodeToString(make([]byte, 32))
	for name, change := range map[string]func(*manifest){
		"no index":      func(m *manifest) { m.Index = 0 },
		"cursor ahead":  func(m *manifest) { m.AppliedIndex = 10 },
		"parent":        func(m *manifest) { m.Files[0].Name = "../x" },
		"absolute":      func(m *manifest) { m.Files[0].Name = "/x" },
		"backslash":     func(m *manifest) { m.Files[0].Name = `a\..\b` },
		"drive":         func(m *manifest) { m.Files[0].Name = "c:x" },
		"unclean":       func(m *manifest) { m.Files[0].Name = "a//b" },
		"empty":         func(m *manifest) { m.Files[0].Name = "" },
		"negative size": func(m *manifest) { m.Files[0].Size = -1 },
		"short sum":     func(m *manifest) { m.Files[0].SHA256 = "ab" },
		"twice":         func(m *manifest) { m.Files = append(m.Files, m.Files[0]) },
		"overflow": func(m *manifest) {
			m.Files[0].Size = 1 << 61
			for _, n := range []string{"x", "y", "z"} {
				m.Files = append(m.Files, manifestFile{Name: n, Size: 1 << 61, SHA256: sum})
			}
		},
	} {
		m := goldenManifest()
		change(m)
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(b); !errors.Is(err, ErrCorruptSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever bit of a frame or of the fields beside it flips, reading it back fails.
func TestFrameCatchesEveryFlip(t *testing.T) {
	frame := plain.sealEntry(goldenEntry())
	for bit := range 8 * len(frame) {
		l := goldenEntry()
		l.Data = bytes.Clone(frame)
		l.Data[bit/8] ^= 1 << (bit % 8)
		if err := plain.openEntry(l); !errors.Is(err, ErrCorruptLog) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for name, change := range map[string]func(*raft.Log){
		"index": func(l *raft.Log) { l.Index++ }, "term": func(l *raft.Log) { l.Term++ },
		"type": func(l *raft.Log) { l.Type = raft.LogNoop }, "extensions": func(l *raft.Log) { l.Extensions = nil },
		"moved byte": func(l *raft.Log) { l.Extensions = []byte{1, 'h'} },
	} {
		l := goldenEntry()
		l.Data = bytes.Clone(frame)
		change(l)
		if err := plain.openEntry(l); !errors.Is(err, ErrCorruptLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := plain.openValue([]byte("Other"), plain.sealValue([]byte("Vote"), []byte("x"))); !errors.Is(err, ErrCorruptLog) {
		t.Error("a value was read under another key")
	}
}

func TestMemberFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "membership")
	m, err := openMemberFile(vfs.Default, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, known := m.get(); known {
		t.Fatal("an empty file is known")
	}
	two := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "1"}, {ID: "b", Address: "2", Suffrage: raft.Nonvoter}}}
	if err := m.save(5, two); err != nil {
		t.Fatal(err)
	}
	if err := m.saveNewer(4, raft.Configuration{}); err != nil {
		t.Fatal(err)
	}
	m, err = openMemberFile(vfs.Default, path)
	if err != nil {
		t.Fatal(err)
	}
	if index, conf, known := m.get(); !known || index != 5 || !reflect.DeepEqual(conf, two) {
		t.Fatalf("%d %+v %v", index, conf, known)
	}
	for off := range fileSize(t, path) {
		flipBit(t, path, off, 2)
		if bad, err := openMemberFile(vfs.Default, path); err == nil || bad.known {
			t.Fatalf("byte %d: accepted", off)
		}
		flipBit(t, path, off, 2)
	}
}

func FuzzOpenEntry(f *testing.F) {
	f.Add(uint64(7), uint64(3), byte(0), plain.sealEntry(goldenEntry()), []byte{1})
	f.Add(uint64(0), uint64(0), byte(9), []byte{}, []byte{})
	f.Add(uint64(1), uint64(1), byte(1), []byte{1, 0, 0, 0}, []byte(nil))
	f.Fuzz(func(t *testing.T, index, term uint64, typ byte, data, ext []byte) {
		l := &raft.Log{Index: index, Term: term, Type: raft.LogType(typ), Data: data, Extensions: ext}
		err := plain.openEntry(l)
		if err != nil {
			if !errors.Is(err, ErrCorruptLog) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(plain.sealEntry(l), data) {
			t.Fatal("another frame for the same entry")
		}
	})
}

func FuzzOpenValue(f *testing.F) {
	f.Add([]byte("Vote"), plain.sealValue([]byte("Vote"), vote{term: 1, candidate: []byte("n")}.encode()))
	f.Add([]byte(""), []byte{1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, key, frame []byte) {
		v, err := plain.openValue(key, frame)
		if err == nil && !bytes.Equal(plain.sealValue(key, v), frame) {
			t.Fatal("another frame for the same value")
		}
		_, _ = decodeVote(frame)
	})
}

func FuzzManifest(f *testing.F) {
	b, err := goldenManifest().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("MSNP\x01\xff\xff\xff\xff"))
	f.Add(sealDocument(magicManifest, []byte(`{"files":[{"name":"..","size":-1}]}`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, in := range [][]byte{b, sealDocument(magicManifest, b)} { // also behind a good checksum
			m, err := decodeManifest(in)
			if err != nil {
				if !errors.Is(err, ErrCorruptSnapshot) {
					t.Fatal(err)
				}
				continue
			}
			for _, f := range m.Files {
				if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
					t.Fatalf("name %q leads out", f.Name)
				}
			}
			if m.bytes() < 0 {
				t.Fatal("sizes overflow")
			}
		}
	})
}

func FuzzReceiveSnapshot(f *testing.F) {
	b, err := goldenManifest().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(b, "abc"...))
	f.Add([]byte("MSNP\x01\x00\x00\x00\x04"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = receiveSnapshot(bytes.NewReader(b), vfs.Default, filepath.Join(t.TempDir(), "s"))
	})
}

func FuzzCheckPages(f *testing.F) {
	for _, b := range boltSamples(f) {
		f.Add(b, uint32(0), byte(0))
		f.Add(b, uint32(8192+3), byte(0x80))
	}
	f.Add([]byte("not bolt"), uint32(0), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, off uint32, mask byte) {
		b = bytes.Clone(b)
		if len(b) > 0 {
			b[int(off)%len(b)] ^= mask
		}
		keys := 0
		err := checkPages(bytes.NewReader(b), int64(len(b)), func(_ string, key, _ []byte) error {
			if keys++; keys > len(b) {
				t.Fatal("more keys than bytes")
			}
			return nil
		})
		if err != nil && !errors.Is(err, errBoltShape) {
			t.Fatal(err)
		}
	})
}
