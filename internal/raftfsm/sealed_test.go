package raftfsm

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
)

// keyBox is a Sealer with several keys: a key's number and a nonce stand before
// what AES-GCM made.
type keyBox struct {
	mu      sync.Mutex
	keys    map[uint32][]byte
	current uint32
}

func newKeyBox() *keyBox {
	b := &keyBox{keys: map[uint32][]byte{}}
	b.rotate()
	return b
}

func (b *keyBox) rotate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current++
	key := make([]byte, 32)
	rand.Read(key)
	b.keys[b.current] = key
}

func (b *keyBox) destroyOlder() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.keys {
		if id != b.current {
			delete(b.keys, id)
		}
	}
}

func (b *keyBox) aead(id uint32) (cipher.AEAD, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	block, err := aes.NewCipher(b.keys[id])
	if err != nil {
		return nil, errKeyGone
	}
	return cipher.NewGCM(block)
}

var errKeyGone = errors.New("key is gone")

func (b *keyBox) Seal(dst, aad, plaintext []byte) []byte {
	b.mu.Lock()
	id := b.current
	b.mu.Unlock()
	gcm, err := b.aead(id)
	if err != nil {
		panic(err)
	}
	nonce := make([]byte, 12)
	rand.Read(nonce)
	dst = binary.BigEndian.AppendUint32(dst, id)
	return gcm.Seal(append(dst, nonce...), nonce, plaintext, aad)
}

func (b *keyBox) Open(dst, aad, sealed []byte) ([]byte, error) {
	if len(sealed) < 16 {
		return nil, errors.New("too short")
	}
	gcm, err := b.aead(binary.BigEndian.Uint32(sealed))
	if err != nil {
		return nil, err
	}
	return gcm.Open(dst, sealed[4:16], sealed[16:], aad)
}

func withSealer(b *keyBox) func(*Options) { return func(o *Options) { o.Sealer = b } }

// Whatever bit of a sealed frame or of the fields beside it flips, it is refused,
// and so are a frame of the other kind and one of another place.
func TestSealedFrameCatchesEveryFlip(t *testing.T) {
	f := framer{newKeyBox()}
	frame := f.sealEntry(goldenEntry())
	if frame[0] != 2 || bytes.Contains(frame, []byte("hello")) {
		t.Fatalf("frame %x", frame)
	}
	open := func(change func(*raft.Log)) error {
		l := goldenEntry()
		l.Data = bytes.Clone(frame)
		change(l)
		return f.openEntry(l)
	}
	if err := open(func(*raft.Log) {}); err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(frame) {
		if err := open(func(l *raft.Log) { l.Data[bit/8] ^= 1 << (bit % 8) }); !errors.Is(err, ErrCorruptLog) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for name, change := range map[string]func(*raft.Log){
		"index": func(l *raft.Log) { l.Index++ }, "term": func(l *raft.Log) { l.Term++ },
		"type": func(l *raft.Log) { l.Type = raft.LogNoop }, "extensions": func(l *raft.Log) { l.Extensions = nil },
		"cut": func(l *raft.Log) { l.Data = l.Data[:8] }, "empty": func(l *raft.Log) { l.Data = nil },
		"summed": func(l *raft.Log) { l.Data = plain.sealEntry(goldenEntry()) },
	} {
		if err := open(change); !errors.Is(err, ErrCorruptLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	value := f.sealValue([]byte(keyVote), []byte("x"))
	if _, err := f.openValue([]byte(keyCurrentTerm), value); !errors.Is(err, ErrCorruptLog) {
		t.Error("a value was read under another key")
	}
	if err := plain.openEntry(&raft.Log{Data: frame}); !errors.Is(err, ErrCorruptLog) {
		t.Error("a sealed frame was read without a sealer")
	}
}

// Neither commands nor votes lie readable in raft.db, and a restart reads them.
func TestRaftDBHoldsNoPlaintext(t *testing.T) {
	dir, box := t.TempDir(), newKeyBox()
	s := openShard(t, dir, withSealer(box)).lead(t)
	s.put(t, "secret-name=secret-value")
	s.put(t, "b=2")
	want := s.machine.get()
	crash := t.TempDir()
	copyTree(t, dir, crash) // the machine was never flushed: raft.db alone has the commands
	s.close(t)
	if b := mustRead(t, dbFile(dir)); bytes.Contains(b, []byte("secret")) {
		t.Fatal("a command lies readable in raft.db")
	}
	c := openShard(t, crash, withSealer(box)).lead(t)
	if got := c.machine.get(); !reflect.DeepEqual(got, want) {
		t.Fatalf("after a restart %+v, want %+v", got, want)
	}
	if r := c.group.Stats().Repair; r != (Repair{}) {
		t.Fatalf("%+v", r)
	}
}

// A value under a destroyed key is damage: a single voter begins anew, a replica
// with peers says what to do and touches nothing.
func TestDestroyedKeyIsDamageWithARemedy(t *testing.T) {
	dir, box := t.TempDir(), newKeyBox()
	s := openShard(t, dir, withSealer(box), func(o *Options) { o.NoSync = false }).lead(t)
	s.putMany(t, 0, 10)
	s.close(t)
	want := s.machine.get()
	box.rotate()
	box.destroyOlder()

	member := t.TempDir()
	copyTree(t, dir, member)
	addPeerToMembership(t, member)
	before := listTree(t, filepath.Join(member, "raft"))
	_, err := tryOpenShard(t, member, withSealer(box), func(o *Options) { o.NoSync = false })
	var rejoin *RejoinError
	if !errors.As(err, &rejoin) || !errors.Is(err, ErrDamaged) || !errors.Is(err, errKeyGone) || !strings.Contains(err.Error(), "rejoin") {
		t.Fatalf("with peers: %v", err)
	}
	if after := listTree(t, filepath.Join(member, "raft")); !reflect.DeepEqual(after, before) {
		t.Fatalf("files changed:\n%v\n%v", before, after)
	}

	c := openShard(t, dir, withSealer(box)).lead(t)
	if got := c.machine.get(); !reflect.DeepEqual(got, want) {
		t.Fatalf("state %+v, want %+v", got, want)
	}
	if r := c.group.Stats().Repair; !strings.Contains(r.Reason, "key is gone") || r.MovedTo == "" {
		t.Fatalf("%+v", r)
	}
	c.put(t, "after=1")
}

func addPeerToMembership(t testing.TB, dir string) {
	t.Helper()
	m, err := openMemberFile(osFS, filepath.Join(dir, "raft", "membership"))
	if err != nil {
		t.Fatal(err)
	}
	index, conf, _ := m.get()
	conf.Servers = append(conf.Servers, raft.Server{ID: "n2", Address: "n2"})
	if err := m.save(index, conf); err != nil {
		t.Fatal(err)
	}
}

// listTree maps each file below dir to what is in it.
func listTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "raft.lock" {
			return err
		}
		out[path] = string(mustRead(t, path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Damage in snapshots of a replica with peers is told, never moved or removed.
func TestReplicaWithPeersMovesNoSnapshotAside(t *testing.T) {
	for _, what := range []string{"MANIFEST", "data/state.json"} {
		dir, _ := preparedShard(t, 20)
		addPeerToMembership(t, dir)
		snaps, _ := filepath.Glob(filepath.Join(dir, "raft", "snapshots", "*"))
		flipBit(t, filepath.Join(snaps[0], filepath.FromSlash(what)), 12, 1)
		if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
			t.Fatal(err)
		}
		before := listTree(t, filepath.Join(dir, "raft"))
		_, err := tryOpenShard(t, dir, func(o *Options) { o.NoSync, o.Bootstrap = false, false })
		var rejoin *RejoinError
		if !errors.As(err, &rejoin) || !errors.Is(err, ErrStateLost) {
			t.Fatalf("%s: %v", what, err)
		}
		if after := listTree(t, filepath.Join(dir, "raft")); !reflect.DeepEqual(after, before) {
			t.Fatalf("%s: files changed", what)
		}
	}
}
