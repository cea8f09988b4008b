package keyring

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
)

// mendMaster gives a master key line its checksum.
func mendMaster(line []byte) []byte {
	head := line[:bytes.LastIndexByte(bytes.TrimRight(line, "\n"), ' ')]
	sum := sha256.Sum256(head)
	return append(append(bytes.Clone(head), ' '), hex.EncodeToString(sum[:masterSum])...)
}

// busy is a table with everything in it.
func busy(t testing.TB) *table {
	k := mustOpen(t, newDisk().opt(1))
	for _, ns := range []NamespaceID{nsA, nsB, {3}} {
		if err := k.CreateNamespace(ns); err != nil {
			t.Fatal(err)
		}
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"a", "b", "c", "d"})
	if err != nil {
		t.Fatal(err)
	}
	must[*DataKey](t)(k.Combine(ids[:2]))
	must[*DataKey](t)(k.Combine(ids[1:]))
	if err := errors.Join(k.Destroy(ids[3], KeyID{9}), k.DestroyNamespace(NamespaceID{3})); err != nil {
		t.Fatal(err)
	}
	return k.table
}

// TestGoldenImage also covers the derivations under master key and node secret.
func TestGoldenImage(t *testing.T) {
	st := &state{cursor: cursor{258, 3}, ended: 7, command: fixedKey(6).raw, table: busy(t)}
	secrets := &nodeSecrets{master: fixedKey(1).raw, all: []*secret{fixedKey(2).raw}, rand: seeded(3)}
	image := must[[]byte](t)(secrets.wrap(imageVersion, imageLabel, st.encode()))
	sum := sha256.Sum256(image)
	goldenCheck(t, "IMAGE", sum[:], goldenImage)
	back := must[*state](t)(decodeState(must[[]byte](t)(secrets.unwrap(imageVersion, imageLabel, image)), new(macPool)))
	if back.cursor != st.cursor || back.ended != 7 || *back.command != *st.command || !bytes.Equal(back.encode(), st.encode()) {
		t.Fatal("another state came back")
	}
	backup := must[[]byte](t)(sealBackup(st, fixedKey(1).raw, seeded(3)))
	sum = sha256.Sum256(backup)
	goldenCheck(t, "BACKUP", sum[:], goldenBackup)
}

const (
	goldenImage  = "0df1817414666b3dc203e068eacacc312c2270f375bcaa165c6fe1a93781f3b4" // SHA-256
	goldenBackup = "1ed98eaf4ed5b48437a7e8efca105c6ec01a184a8f6083ec51183e9a5652efc5" // SHA-256
)

const goldenTable = "c8d225e894eb811bcab84ce230f8ac8daa24227514f24a741312a420f0593c49" // SHA-256, the table is long

func TestTableBytes(t *testing.T) {
	tab := busy(t)
	plain := tab.appendTo(nil)
	if len(plain) != tab.size() {
		t.Fatalf("%d bytes, room for %d", len(plain), tab.size())
	}
	back, err := decodeTable(plain, new(macPool))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.appendTo(nil), plain) {
		t.Fatal("encode(decode(x)) is not x")
	}
	sum := sha256.Sum256(plain)
	goldenCheck(t, "TABLE", sum[:], goldenTable)
	for n := range plain {
		if _, err := decodeTable(plain[:n], new(macPool)); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestTableContradictions(t *testing.T) {
	for name, spoil := range map[string]func(*table){
		"no cluster key":        func(x *table) { x.cluster.id = KeyID{} },
		"namespace twice":       func(x *table) { x.spaces[1].names.id = x.spaces[0].names.id },
		"dead namespace lives":  func(x *table) { x.deadSpaces[0] = x.spaces[0].names.id },
		"key twice":             func(x *table) { x.spaces[0].keys[0].id = x.spaces[0].keys[1].id },
		"subject twice":         func(x *table) { x.spaces[0].keys[0].tag = x.spaces[0].keys[1].tag },
		"dead key lives":        func(x *table) { x.deadKeys[0] = x.cluster.id },
		"grave of a living key": func(x *table) { x.spaces[0].dead[0].id = x.cluster.id },
		"combines one":          func(x *table) { x.combined[0].members = x.combined[0].members[:1] },
		"combines out of order": func(x *table) { m := x.combined[0].members; m[0], m[1] = m[1], m[0] },
		"combines the unknown":  func(x *table) { x.combined[0].members[1] = KeyID{0xFF, 0xFF, 0xFF} },
		"combined twice":        func(x *table) { x.combined = append(x.combined, x.combined[0]) },
	} {
		tab := busy(t)
		spoil(tab)
		if _, err := decodeTable(tab.appendTo(nil), new(macPool)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMasterText(t *testing.T) {
	key := fixedKey(3).raw
	text := encodeMaster(key)
	for _, ok := range [][]byte{text, bytes.TrimRight(text, "\n"), append(bytes.TrimRight(text, "\n"), "\r\n"...)} {
		if got, err := decodeMaster(ok); err != nil || *got != *key {
			t.Fatalf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{
		"", "x", "mneme-master-key v1 00 x", "other v1 " + hex.EncodeToString(key[:]) + " ",
		"mneme-master-key x ", "mneme-master-key v1 zz" + hex.EncodeToString(key[1:]) + " ", "mneme-master-key v0 00 ",
	} {
		line := []byte(bad)
		if bytes.HasSuffix(line, []byte(" ")) {
			line = mendMaster(append(line, 'x'))
		}
		if _, err := decodeMaster(line); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestRandomnessRunsOut(t *testing.T) {
	for n := 0; ; n++ {
		opt := newDisk().opt(1)
		opt.Rand = &limited{n: n}
		k, err := Open(opt)
		if err == nil {
			err = k.CreateNamespace(nsA)
		}
		if err == nil {
			ids, _, e := k.EnsureSubjects(nsA, []string{"a", "b"})
			if err = e; err == nil {
				_, err = k.Combine(ids)
			}
			if err == nil {
				err = k.Destroy(ids[0])
			}
		}
		if err == nil {
			if n < 10 {
				t.Fatalf("only %d reads", n)
			}
			return
		}
		wantErr(t, err, errFault)
	}
}

// limited gives n reads, then fails.
type limited struct{ n, i int }

func (l *limited) Read(b []byte) (int, error) {
	if l.n == l.i {
		return 0, errFault
	}
	l.i++
	for i := range b {
		b[i] = byte(l.i)
	}
	return len(b), nil
}

func FuzzDecodeTable(f *testing.F) {
	plain := busy(f).appendTo(nil)
	f.Add(plain)
	f.Add(plain[:100])
	f.Add([]byte{})
	f.Add(append(bytes.Clone(plain[:48]), 0xFF, 0xFF, 0xFF, 0xFF))
	f.Fuzz(func(t *testing.T, b []byte) {
		tab, err := decodeTable(b, new(macPool))
		if err != nil {
			return
		}
		if !bytes.Equal(tab.appendTo(nil), b) {
			t.Fatal("what was accepted encodes otherwise")
		}
	})
}

func FuzzOpenImage(f *testing.F) {
	secrets := &nodeSecrets{master: fixedKey(1).raw, all: []*secret{fixedKey(2).raw}, rand: seeded(3)}
	st := &state{cursor: cursor{9, 2}, ended: 9, command: fixedKey(6).raw, table: busy(f)}
	image := must[[]byte](f)(secrets.wrap(imageVersion, imageLabel, st.encode()))
	f.Add(image)
	f.Add(encodeCopy(ringFormat.magic, 1, image))
	f.Add(must[[]byte](f)(sealBackup(st, secrets.master, seeded(4))))
	f.Add(image[:wrappedMinimum])
	f.Add(append([]byte{snapshotVersion}, st.encode()...))
	f.Add(encodeMaster(secrets.master))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = secrets.unwrap(imageVersion, imageLabel, b)
		_, _ = openBackup(b, secrets.master)
		_, _ = decodeBackup(b)
		_, _ = parseMaster(string(b))
		if s, err := decodeSnapshot(b, new(macPool)); err == nil && !bytes.Equal(s.encode(), b[1:]) {
			t.Fatal("what was accepted encodes otherwise")
		}
		head, err := decodeHead(ringFormat.magic, b)
		if err != nil {
			return
		}
		for at, sum := head.end, head.sum; ; {
			record := recordAt(b, at, sum)
			if record == nil {
				return
			}
			at += 4 + len(record) + recordSum
			sum = b[at-recordSum : at]
		}
	})
}
