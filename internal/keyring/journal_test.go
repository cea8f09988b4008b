package keyring

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// filled gives a file system with a small keyring and the id of a key in it.
func filled(t *testing.T) (*disk, KeyID) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"ada"})
	if err != nil {
		t.Fatal(err)
	}
	return c, ids[0]
}

func TestEveryFlippedByteIsHealed(t *testing.T) {
	c, id := filled(t)
	good := c.get(c.path(primaryName))
	for _, name := range []string{primaryName, secondaryName} {
		for i := range good {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << (i % 8)
			c.put(c.path(name), bad)
			k := mustOpen(t, c.opt(2))
			if _, err := k.KeyByID(id); err != nil {
				t.Fatalf("%s, byte %d: %v", name, i, err)
			}
			if !bytes.Equal(c.get(c.path(name)), good) {
				t.Fatalf("%s, byte %d: not healed", name, i)
			}
		}
	}
}

func TestBothCopiesDamaged(t *testing.T) {
	c, _ := filled(t)
	good := c.get(c.path(primaryName))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x80
		c.put(c.path(primaryName), bad)
		c.put(c.path(secondaryName), bad)
		_, err := Open(c.opt(2))
		wantErr(t, err, ErrDamaged)
	}
	c.remove(c.path(primaryName))
	_, err := Open(c.opt(2))
	wantErr(t, err, ErrDamaged) // damaged and missing is not a first start
}

// TestKeysOfTwoProgramsOverwroteEachOther: a second program that had opened the same
// keys, say with a copied lock file, wrote its record over another one's that was
// acknowledged.
func TestKeysOfTwoProgramsOverwroteEachOther(t *testing.T) {
	c, _ := filled(t)
	a, b := mustOpen(t, c.opt(2)), mustOpen(t, c.opt(3))
	ids, _, err := a.EnsureSubjects(nsA, []string{"bob"})
	if err != nil {
		t.Fatal(err)
	}
	before := c.get(c.path(primaryName))
	if _, _, err := b.EnsureSubjects(nsA, []string{"eve"}); err == nil {
		t.Error("the second program wrote behind what it had read")
	}
	for _, name := range []string{primaryName, secondaryName} {
		if !bytes.Equal(c.get(c.path(name)), before) {
			t.Errorf("%s was changed", name)
		}
	}
	must[*DataKey](t)(mustOpen(t, c.opt(4)).KeyByID(ids[0]))
}

// A damage in each copy, in different records, costs nothing.
func TestCopiesHealEachOtherRecordByRecord(t *testing.T) {
	c, id := filled(t)
	good := c.get(c.path(primaryName))
	end := must[copyHead](t)(decodeHead(ringFormat.magic, good)).end
	first, last := bytes.Clone(good), bytes.Clone(good)
	first[end+9] ^= 1
	last[len(last)-9] ^= 1
	for _, pair := range [][2][]byte{{first, last}, {last, first}, {withHead(first), last}, {first, withHead(last)}} {
		c.put(c.path(primaryName), pair[0])
		c.put(c.path(secondaryName), pair[1])
		must[*DataKey](t)(mustOpen(t, c.opt(2)).KeyByID(id))
		if !bytes.Equal(c.get(c.path(primaryName)), good) || !bytes.Equal(c.get(c.path(secondaryName)), good) {
			t.Fatal("not healed")
		}
	}
}

// withHead damages the head of a copy.
func withHead(raw []byte) []byte {
	out := bytes.Clone(raw)
	out[40] ^= 1
	return out
}

// A write that reached only the first copy was never acknowledged: what of it
// does not verify is cut off, and what both copies had is kept.
func TestTornEndOfFirstCopyIsNoDamage(t *testing.T) {
	c, id := filled(t)
	good := c.get(c.path(primaryName))
	k := mustOpen(t, c.opt(2))
	if _, _, err := k.EnsureSubjects(nsA, []string{"bob"}); err != nil {
		t.Fatal(err)
	}
	longer := c.get(c.path(primaryName))
	for n := len(good); n <= len(longer); n++ {
		c.put(c.path(primaryName), longer[:n])
		c.put(c.path(secondaryName), good)
		k := mustOpen(t, c.opt(3))
		must[*DataKey](t)(k.KeyByID(id))
		if _, err := k.DataKey(nsA, "bob"); (err == nil) != (n == len(longer)) {
			t.Fatalf("%d of %d bytes: %v", n, len(longer), err)
		}
		// The other way round the second copy was reached, so it was acknowledged.
		if n == len(good) || n == len(longer) {
			continue
		}
		c.put(c.path(primaryName), good)
		c.put(c.path(secondaryName), longer[:n])
		_, err := Open(c.opt(4))
		wantErr(t, err, ErrDamaged)
	}
}

func TestMissingOrOlderCopyIsHealed(t *testing.T) {
	for _, name := range []string{primaryName, secondaryName} {
		for _, cut := range []bool{false, true} {
			c, id := filled(t)
			old := c.get(c.path(name))
			k := mustOpen(t, c.opt(2))
			ids, _, err := k.EnsureSubjects(nsA, []string{"bob"})
			if cut {
				err = errors.Join(err, k.Destroy(id))
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, broken := range [][]byte{old, nil} {
				if c.put(c.path(name), broken); broken == nil {
					c.remove(c.path(name))
				}
				var log bytes.Buffer
				opt := c.opt(3)
				opt.Log = slog.New(slog.NewTextHandler(&log, nil))
				if _, err := mustOpen(t, opt).KeyByID(ids[0]); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(c.get(c.path(primaryName)), c.get(c.path(secondaryName))) {
					t.Fatal("not healed")
				}
				if !bytes.Contains(log.Bytes(), []byte(name)) {
					t.Fatalf("healing not logged: %s", &log)
				}
			}
		}
	}
}

func TestNewerFormat(t *testing.T) {
	c, id := filled(t)
	if err := mustOpen(t, c.opt(2)).Destroy(id); err != nil { // leaves no records
		t.Fatal(err)
	}
	good := c.get(c.path(primaryName))
	put := func(first, second []byte) {
		c.put(c.path(primaryName), first)
		c.put(c.path(secondaryName), second)
	}
	for _, at := range []int{8, copyHeader} { // the version of the file, of the image
		newer := withVersion(good, at, 4)
		for _, pair := range [][2][]byte{{newer, good}, {newer, newer}, {good, newer}} {
			if at == copyHeader && bytes.Equal(pair[0], good) {
				continue // equal generations: the first copy is read
			}
			put(pair[0], pair[1])
			_, err := Open(c.opt(2))
			wantErr(t, err, ErrNewerFormat)
			if at == 8 && (!bytes.Equal(c.get(c.path(primaryName)), pair[0]) || !bytes.Equal(c.get(c.path(secondaryName)), pair[1])) {
				t.Fatal("a newer file was touched")
			}
		}
		put(withVersion(good, at, 1), withVersion(good, at, 1))
		_, err := Open(c.opt(2))
		wantErr(t, err, map[int]error{8: ErrOlderFormat, copyHeader: ErrDamaged}[at])
	}
	put(good, good)
	text := mendMaster(bytes.Replace(encodeMaster(new(secret)), []byte(" v1 "), []byte(" v9 "), 1))
	c.put(c.path(masterName), text)
	_, err := Open(c.opt(2))
	wantErr(t, err, ErrNewerFormat)
}

// What a replacement that was cut short left may hold keys: it goes at the start.
func TestLeftOverTemporaryFilesAreRemoved(t *testing.T) {
	c, _ := filled(t)
	for _, name := range keyFiles {
		c.put(c.path("."+name+".tmp-ABCDEFGH"), []byte("left over"))
	}
	c.put(c.path(".operator.token.tmp-ABCDEFGH"), []byte("not ours"))
	mustOpen(t, c.opt(2))
	want := append([]string{".operator.token.tmp-ABCDEFGH"}, keyFiles...)
	for when, d := range map[string]*disk{"now": c, "after a loss of power": c.crashed(0, nil)} {
		if names := slices.Sorted(maps.Keys(d.files())); !slices.Equal(names, want) {
			t.Fatalf("%s: files %v, want %v", when, names, want)
		}
	}
}

func TestUnreadableFiles(t *testing.T) {
	for fault, damage := range map[error]bool{syscall.EIO: true, os.ErrPermission: false} {
		c, id := filled(t)
		opt := c.opt(2)
		opt.FS = errorfs.Wrap(c.MemFS, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileRead && op.Path == c.path(primaryName) {
				return &fs.PathError{Op: "read", Err: fault}
			}
			return nil
		}))
		k, err := Open(opt)
		if !damage {
			wantErr(t, err, fault)
			continue
		}
		if err != nil {
			t.Fatal("an unreadable sector was not healed from the other copy:", err)
		}
		must[*DataKey](t)(k.KeyByID(id))
		_ = k.Close()
	}
}

func TestLengthInHeaderIsChecked(t *testing.T) {
	c, id := filled(t)
	if err := mustOpen(t, c.opt(2)).Destroy(id); err != nil {
		t.Fatal(err)
	}
	good := c.get(c.path(primaryName))
	for _, v := range []byte{0xFF, good[24] - 1} {
		_, err := decodeHead(ringFormat.magic, withVersion(good, 24, v))
		wantErr(t, err, ErrDamaged)
	}
}

// A hundred thousand keys are there, and one more costs a record.
func TestOneKeyDoesNotRewriteTheOthers(t *testing.T) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	many := make([]string, 100_000)
	for i := range many {
		many[i] = fmt.Sprint("subject", i)
	}
	if _, _, err := k.EnsureSubjects(nsA, many); err != nil {
		t.Fatal(err)
	}
	before := len(c.get(c.path(primaryName)))
	steps := 0
	c.hook = func() error { steps++; return nil }
	if _, _, err := k.EnsureSubjects(nsA, []string{"one more"}); err != nil {
		t.Fatal(err)
	}
	if grown := len(c.get(c.path(primaryName))) - before; grown <= 0 || grown > 256 {
		t.Fatalf("the file grew by %d bytes", grown)
	}
	if steps != 4 { // for each copy: write, sync
		t.Fatalf("%d steps", steps)
	}
}

// Records are folded into the image when they outgrow it, and nothing is lost.
func TestRecordsAreFoldedIntoTheImage(t *testing.T) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	var ids []KeyID
	cuts, gen := 0, k.file.gen
	for i := range 3000 {
		got, _, err := k.EnsureSubjects(nsA, []string{fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, got...)
		if k.file.gen != gen {
			cuts, gen = cuts+1, k.file.gen
		}
	}
	if cuts < 2 || cuts > 12 {
		t.Fatalf("%d cuts", cuts)
	}
	back := mustOpen(t, c.opt(2))
	for _, id := range ids {
		must[*DataKey](t)(back.KeyByID(id))
	}
	a, b := must[[]byte](t)(k.Machine().Snapshot()), must[[]byte](t)(back.Machine().Snapshot())
	if !bytes.Equal(a, b) {
		t.Fatal("another state was read than was written")
	}
}

// The keyring's appends must reach the disk before they are acknowledged; the
// real file system cannot show that, one that loses unsynced bytes does.
func TestAcknowledgedKeySurvivesPowerLoss(t *testing.T) {
	c, id := filled(t)
	left := c.crashed(0, whole())
	must[*DataKey](t)(mustOpen(t, left.opt(2)).KeyByID(id))
	for _, name := range []string{primaryName, secondaryName} {
		if !bytes.Equal(left.get(left.path(name)), c.get(c.path(name))) {
			t.Fatalf("%s was not synced", name)
		}
	}
}

func TestGoldenCopyHeader(t *testing.T) {
	goldenCheck(t, "COPY", encodeCopy(ringFormat.magic, 258, []byte("image")), goldenCopy)
	goldenCheck(t, "MASTER", encodeMaster(fixedKey(1).raw), goldenMaster)
}

const (
	goldenCopy   = "4d4e454d454b52000300000000000001020000000000000005696d61676567cef8eb3fc5e3b64d775c75b8d3330fa31da99e345045bd3bb543210041a186"
	goldenMaster = "6d6e656d652d6d61737465722d6b6579207631203031303230333034303530363037303830393061306230633064306530663130313131323133313431353136313731383139316131623163316431653166323020616266303663313962636334303337610a"
)
