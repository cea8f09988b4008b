package keyring

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
	"testing"
)

// filled gives a file system with a small keyring and the id of a key in it.
func filled(t *testing.T) (*crashFS, KeyID) {
	c := newCrashFS()
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
	good := c.visible[c.path(primaryName)].data
	for _, name := range []string{primaryName, secondaryName} {
		for i := range good {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << (i % 8)
			c.visible[c.path(name)] = &inode{bad}
			k := mustOpen(t, c.opt(2))
			if _, err := k.KeyByID(id); err != nil {
				t.Fatalf("%s, byte %d: %v", name, i, err)
			}
			if !bytes.Equal(c.visible[c.path(name)].data, good) {
				t.Fatalf("%s, byte %d: not healed", name, i)
			}
		}
	}
}

func TestBothCopiesDamaged(t *testing.T) {
	c, _ := filled(t)
	good := c.visible[c.path(primaryName)].data
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x80
		c.visible[c.path(primaryName)] = &inode{bad}
		c.visible[c.path(secondaryName)] = &inode{good[:i]}
		_, err := Open(c.opt(2))
		wantErr(t, err, ErrDamaged)
	}
	delete(c.visible, c.path(primaryName))
	_, err := Open(c.opt(2))
	wantErr(t, err, ErrDamaged) // damaged and missing is not a first start
}

func TestMissingOrOlderCopyIsHealed(t *testing.T) {
	for _, name := range []string{primaryName, secondaryName} {
		c, _ := filled(t)
		old := c.visible[c.path(name)]
		k := mustOpen(t, c.opt(2))
		ids, _, err := k.EnsureSubjects(nsA, []string{"bob"})
		if err != nil {
			t.Fatal(err)
		}
		for _, broken := range []*inode{old, nil} {
			if c.visible[c.path(name)] = broken; broken == nil {
				delete(c.visible, c.path(name))
			}
			var log bytes.Buffer
			opt := c.opt(3)
			opt.Log = slog.New(slog.NewTextHandler(&log, nil))
			if _, err := mustOpen(t, opt).KeyByID(ids[0]); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(c.visible[c.path(primaryName)].data, c.visible[c.path(secondaryName)].data) {
				t.Fatal("not healed")
			}
			if !bytes.Contains(log.Bytes(), []byte(name)) {
				t.Fatalf("healing not logged: %s", &log)
			}
		}
	}
}

func TestNewerFormat(t *testing.T) {
	c, _ := filled(t)
	good := c.visible[c.path(primaryName)].data
	for what, i := range map[string]int{"file": 8, "image": copyHeader} {
		for _, name := range []string{primaryName, secondaryName} {
			if what == "image" && name == secondaryName {
				continue // equal generations: the first copy is read
			}
			newer := &inode{withVersion(good, i, 2)}
			c.visible[c.path(name)] = newer
			_, err := Open(c.opt(2))
			wantErr(t, err, ErrNewerFormat)
			if what == "file" && c.visible[c.path(name)] != newer {
				t.Fatal("a newer file was touched")
			}
			c.visible[c.path(name)] = &inode{good}
			c.visible[c.path(secondaryName)] = &inode{good}
		}
	}
	for _, i := range []int{8, copyHeader} {
		c.visible[c.path(primaryName)] = &inode{withVersion(good, i, 0)}
		c.visible[c.path(secondaryName)] = &inode{withVersion(good, i, 0)}
		_, err := Open(c.opt(2))
		wantErr(t, err, ErrDamaged)
	}
	c.visible[c.path(primaryName)], c.visible[c.path(secondaryName)] = &inode{good}, &inode{good}
	master := new(secret)
	text := bytes.Replace(encodeMaster(master), []byte(" v1 "), []byte(" v9 "), 1)
	c.visible[c.path(masterName)] = &inode{mendMaster(text)}
	_, err := Open(c.opt(2))
	wantErr(t, err, ErrNewerFormat)
}

type readErrFS struct {
	OSFS
	err error
}

func (f readErrFS) ReadFile(string) ([]byte, error) {
	return nil, &fs.PathError{Op: "read", Err: f.err}
}

func TestUnreadableFiles(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	_, err := NewFileStore(t.TempDir(), readErrFS{err: syscall.EIO}, log).Load()
	wantErr(t, err, ErrDamaged)
	_, err = NewFileStore(t.TempDir(), readErrFS{err: os.ErrPermission}, log).Load()
	if wantErr(t, err, os.ErrPermission); errors.Is(err, ErrDamaged) {
		t.Fatal("a permission is no damage")
	}
}

func TestLengthInHeaderIsChecked(t *testing.T) {
	c, _ := filled(t)
	_, _, err := decodeCopy(ringFormat.magic, withVersion(c.visible[c.path(primaryName)].data, 24, 0xFF))
	wantErr(t, err, ErrDamaged)
}

func TestGoldenCopyHeader(t *testing.T) {
	goldenCheck(t, "COPY", encodeCopy(ringFormat.magic, 258, []byte("image")), goldenCopy)
	goldenCheck(t, "MASTER", encodeMaster(fixedKey(1).raw), goldenMaster)
}

const (
	goldenCopy   = "4d4e454d454b52000100000000000001020000000000000005696d616765bc72e02c44d61bce72ccf338ae801a0b260fb4eb2e208c41ef548f2a888258c1"
	goldenMaster = "6d6e656d652d6d61737465722d6b6579207631203031303230333034303530363037303830393061306230633064306530663130313131323133313431353136313731383139316131623163316431653166323020616266303663313962636334303337610a"
)
