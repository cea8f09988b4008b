package hooks

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mneme/memory"
)

const (
	diskVersion = 1 // first byte of a key and of what is sealed
	keyBytes    = 32

	keyName = "key" // of the key under which hooks seal
	// otherKeys begins the names of keys under which hooks open, too: the one that was made here, so that a copy
	// put in place of it loses nothing, and whichever somebody lays beside it.
	otherKeys = keyName + "."
)

// keys seal under one key and open under several.
type keys struct {
	seal cipher.AEAD
	open []cipher.AEAD // the former first
	set  string        // names them all
}

// readKeys reads the keys, or makes one.
func (d *Disk) readKeys() (keys, error) {
	path := filepath.Join(d.dir, keyName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = d.locked(context.Background(), func() error { return d.makeKey(path) })
		if err == nil || errors.Is(err, errLocked) { // one of those who held the lock made it
			b, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return keys{}, fmt.Errorf("the hooks' key: %w", err)
	}
	others := d.otherKeys()
	if !isKey(b) {
		if len(others) == 0 {
			return keys{}, memory.Errorf(memory.CodeInvalid, "%s is no key of hooks", path).
				WithHint("restore it, or move it away: another one is made then, and what waits goes on waiting for this one")
		}
		// What cannot be set aside now, the next one sets aside.
		_ = d.locked(context.Background(), func() error { return d.setKeyAside(path) })
		b = others[0]
	}
	ownAlone(path)
	all := append([][]byte{b}, others...)
	var k keys
	var names []string
	for _, b := range all {
		block, err := aes.NewCipher(b[1:])
		if err != nil {
			return keys{}, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return keys{}, err
		}
		k.open, names = append(k.open, aead), append(names, nameOf(b))
	}
	k.seal = k.open[0]
	slices.Sort(names)
	k.set = key(slices.Compact(names)...)[:16]
	return k, nil
}

func isKey(b []byte) bool { return len(b) == 1+keyBytes && b[0] == diskVersion }

// nameOf names a key without telling it.
func nameOf(b []byte) string { return key(keyName, string(b))[:16] }

// ownAlone shuts a key where a copy lost its mode; systems without modes have none.
func ownAlone(path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		_ = ownOnly(path)
	}
}

// otherKeys reads those beside the one that seals. What is none is passed over.
func (d *Disk) otherKeys() (all [][]byte) {
	names, _ := d.files.names(d.dir)
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasPrefix(name, otherKeys) {
			continue
		}
		path := filepath.Join(d.dir, name)
		if b, err := os.ReadFile(path); err == nil && isKey(b) {
			ownAlone(path)
			all = append(all, b)
		}
	}
	return all
}

// makeKey writes a key unless there is one: one that lies beside it, or else a new one, which is laid there, too.
func (d *Disk) makeKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if others := d.otherKeys(); len(others) > 0 {
		return writeFile(d.files, path, others[0], true)
	}
	there, _ := os.ReadDir(filepath.Join(d.dir, spoolDir))
	d.strangers = len(there)
	b := make([]byte, 1+keyBytes)
	b[0] = diskVersion
	_, _ = rand.Read(b[1:]) // never fails
	if err := writeFile(d.files, filepath.Join(d.dir, otherKeys+nameOf(b)), b, true); err != nil {
		return err
	}
	return writeFile(d.files, path, b, true)
}

// setKeyAside moves what was written over a key to beside it, under a name by which it opens, too, should it become
// a key again, as where a copy was under way. Another one that lies there takes its place.
func (d *Disk) setKeyAside(path string) error {
	b, err := os.ReadFile(path)
	if err != nil || isKey(b) { // another hook did it
		return err
	}
	aside := filepath.Join(d.dir, otherKeys+"damaged-"+nameOf(b))
	for n := 2; ; n++ { // what was set aside before may be a key by now
		if _, err := os.Lstat(aside); err != nil {
			break
		}
		aside = filepath.Join(d.dir, fmt.Sprintf("%sdamaged-%s-%d", otherKeys, nameOf(b), n))
	}
	if err := d.files.rename(path, aside); err != nil {
		return err
	}
	d.damaged = aside
	return d.makeKey(path)
}

// KeyLost says, where this one made the key anew, that captures wait under the one that was there before, or that
// what was written over the key was set aside; nil where neither is so.
func (d *Disk) KeyLost() error {
	if d.damaged != "" {
		return memory.Errorf(memory.CodeInvalid, "%s was no key of hooks and was set aside as %s; one that lay beside it took its place", filepath.Join(d.dir, keyName), d.damaged)
	}
	if d.strangers == 0 {
		return nil
	}
	return memory.Errorf(memory.CodeNotFound, "%s was not there and was made anew; what waited before (%d in the spool) does not open under it", filepath.Join(d.dir, keyName), d.strangers).
		WithHint("%s", d.sealedHint())
}

// sealedElsewhere is said of captures that wait and do not open.
func (d *Disk) sealedElsewhere() error {
	return memory.Errorf(memory.CodeConflict, "captures that wait do not open under the keys in %s: they were sealed under another key, or are damaged, and stay where they are", d.dir).
		WithHint("%s", d.sealedHint())
}

func (d *Disk) sealedHint() string {
	return fmt.Sprintf("copy the former key, from a copy of %s, to %s and call `memctl hook drain`; or give them up, by deleting the files in %s whose names end in %s",
		d.dir, filepath.Join(d.dir, otherKeys+"former"), filepath.Join(d.dir, spoolDir), d.sealedMark())
}

// seal encrypts b for one purpose: what was sealed for another does not open.
func (d *Disk) seal(purpose string, b []byte) []byte {
	return d.keys.seal.Seal([]byte{diskVersion}, nil, b, []byte(purpose))
}

var (
	errSealed   = errors.New("it does not open under the hooks' keys")
	errUnsealed = errors.New("it is not what hooks write")
)

func (d *Disk) open(purpose string, b []byte) ([]byte, error) {
	if len(b) == 0 || b[0] != diskVersion {
		return nil, errUnsealed
	}
	for _, key := range d.keys.open {
		if plain, err := key.Open(nil, nil, b[1:], []byte(purpose)); err == nil {
			return plain, nil
		}
	}
	return nil, errSealed
}

// An entry that does not open stays in the spool under a name that says under which keys, so that it is read
// again where they are others, and holds up nothing until then.
const sealedPrefix = ".sealed-"

func (d *Disk) sealedMark() string { return sealedPrefix + d.keys.set }

// isSealed reports whether an entry is known not to open, under whichever keys.
func isSealed(name string) bool { return strings.Contains(name, sealedPrefix) }

// unmarked is the name that an entry was spooled under.
func unmarked(name string) string {
	name, _, _ = strings.Cut(name, sealedPrefix)
	return name
}

// opens reports whether an entry is not known not to open under the keys that are there.
func (d *Disk) opens(name string) bool { return !strings.HasSuffix(name, d.sealedMark()) }
