package keyring

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestMasterKeyLostOrWrong(t *testing.T) {
	c, other := newDisk(), newDisk()
	mustOpen(t, c.opt(1))
	mustOpen(t, other.opt(2))
	first, second := c.path(masterName), c.path(masterName+copySuffix)
	good := c.get(first)
	foreign := other.get(first)
	c.put(first, foreign)
	c.put(second, foreign)
	_, err := Open(c.opt(3))
	wantErr(t, err, ErrMasterKeyLost)
	c.remove(first)
	c.remove(second)
	_, err = Open(c.opt(3))
	wantErr(t, err, ErrMasterKeyLost)
	if c.get(first) != nil || c.get(second) != nil {
		t.Fatal("made a new master key over a keyring")
	}
	c.put(first, good)
	mustOpen(t, c.opt(3))
}

// TestMasterKeyLostWhileOpen: who asks hears of it before the next start does, and nothing is
// changed or healed by asking.
func TestMasterKeyLostWhileOpen(t *testing.T) {
	c, other := newDisk(), newDisk()
	k := mustOpen(t, c.opt(1))
	mustOpen(t, other.opt(2))
	first, second := c.path(masterName), c.path(masterName+copySuffix)
	if err := CheckMaster(k); err != nil {
		t.Error(err)
	}
	good := c.get(first)
	c.remove(first)
	if err := CheckMaster(k); err != nil || c.get(first) != nil {
		t.Errorf("one copy is left: %v", err)
	}
	c.put(second, other.get(first))
	wantErr(t, CheckMaster(k), ErrMasterKeyLost)
	c.put(first, good)
	if err := CheckMaster(k); err != nil {
		t.Error(err)
	}

	elsewhere, text := newDisk(), strings.Repeat("1f", 32)
	opt := elsewhere.opt(3)
	opt.Master = MasterPath{Path: filepath.Join(t.TempDir(), "key")}
	write := func(text string) {
		if err := os.WriteFile(opt.Master.String(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	k = mustOpen(t, opt)
	if err := CheckMaster(k); err != nil {
		t.Error(err)
	}
	write(strings.Repeat("2f", 32))
	wantErr(t, CheckMaster(k), ErrMasterKeyLost)
	if err := os.Remove(opt.Master.String()); err != nil {
		t.Fatal(err)
	}
	wantErr(t, CheckMaster(k), ErrMasterSource)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, CheckMaster(k), ErrClosed)
}

// Every byte of the key that everything hangs on is there twice.
func TestEveryFlippedByteOfTheMasterKeyIsHealed(t *testing.T) {
	c, id := filled(t)
	good := c.get(c.path(masterName))
	for _, name := range []string{masterName, masterName + copySuffix} {
		for i := range good[:len(good)-1] { // the line's end may be anything
			bad := bytes.Clone(good)
			bad[i] ^= 0x04
			c.put(c.path(name), bad)
			must[*DataKey](t)(mustOpen(t, c.opt(2)).KeyByID(id))
			if !bytes.Equal(c.get(c.path(name)), good) {
				t.Fatalf("%s, byte %d: not healed", name, i)
			}
		}
		c.remove(c.path(name))
		mustOpen(t, c.opt(2))
		if !bytes.Equal(c.get(c.path(name)), good) {
			t.Fatalf("%s was not made again", name)
		}
	}
	bad := bytes.Clone(good)
	bad[20] ^= 1
	c.put(c.path(masterName), bad)
	c.put(c.path(masterName+copySuffix), bad)
	_, err := Open(c.opt(2))
	wantErr(t, err, ErrDamaged)
}

// Somebody put another key there: the keyring says which of the two is its own.
func TestOfTwoMasterKeysTheKeyringsOwnWins(t *testing.T) {
	c, id := filled(t)
	good, foreign := c.get(c.path(masterName)), encodeMaster(fixedKey(7).raw)
	for _, name := range []string{masterName, masterName + copySuffix} {
		c.put(c.path(name), foreign)
		must[*DataKey](t)(mustOpen(t, c.opt(2)).KeyByID(id))
		if !bytes.Equal(c.get(c.path(name)), good) {
			t.Fatalf("%s still holds the foreign key", name)
		}
	}
}

// TestKeyFilesThatOthersMayReadAreRefused: only the master key's mode was looked at,
// not the node secret's, the keyring's, the storage keys' and the folder's.
func TestKeyFilesThatOthersMayReadAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := t.TempDir()
	mustOpen(t, Options{Dir: dir, AllowCreate: true})
	for _, name := range keyFiles {
		path := filepath.Join(dir, KeysDir, name)
		for _, mode := range []os.FileMode{0o644, 0o640, 0o660, 0o700} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			_, err := Open(Options{Dir: dir})
			if wantErr(t, err, ErrMode); !strings.Contains(err.Error(), path) {
				t.Fatalf("%v does not name %s", err, path)
			}
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		mustOpen(t, Options{Dir: dir})
	}
	for _, mode := range []os.FileMode{0o777, 0o770, 0o702} {
		if err := os.Chmod(filepath.Join(dir, KeysDir), mode); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Options{Dir: dir})
		wantErr(t, err, ErrMode)
	}
	if err := os.Chmod(filepath.Join(dir, KeysDir), 0o755); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, Options{Dir: dir})
}

func TestMasterKeyFromElsewhere(t *testing.T) {
	key := fixedKey(3).raw
	text := hex.EncodeToString(key[:])
	line := string(encodeMaster(key))
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newDisk()
	var id KeyID
	for i, source := range []MasterSource{
		MasterText{Name: "$KEY", Text: text}, MasterText{Name: "$KEY", Text: " " + line}, MasterText{Name: "$KEY", Text: strings.ToUpper(text) + "\n"},
		MasterCommand{Args: []string{"cat", file}},
	} {
		opt := c.opt(byte(i))
		opt.Master = source
		k := mustOpen(t, opt)
		if i == 0 {
			if err := k.CreateNamespace(nsA); err != nil {
				t.Fatal(err)
			}
			id = must[*DataKey](t)(k.DataKey(nsA, "")).ID()
		}
		must[*DataKey](t)(k.KeyByID(id))
		if leaks(fmt.Sprintf("%v %+v %s %q", source, source, source, source), key) {
			t.Fatal("the source prints the key")
		}
	}
	for name := range c.files() {
		if strings.HasPrefix(name, masterName) {
			t.Fatalf("%s lies beside the data", name)
		}
	}
	bad := text[:40] + "zz" + text[42:]
	for _, x := range []struct {
		source MasterSource
		want   error
	}{
		{nil, ErrMasterKeyLost},
		{MasterText{Name: "$KEY"}, ErrMasterKeyLost},
		{MasterText{Name: "$KEY", Text: hex.EncodeToString(fixedKey(4).raw[:])}, ErrMasterKeyLost},
		{MasterText{Name: "$KEY", Text: bad}, ErrDamaged},
		{MasterText{Name: "$KEY", Text: line[:len(line)-5]}, ErrDamaged},
		{MasterCommand{}, ErrMasterKeyLost},
		{MasterCommand{Args: []string{"cat", file + "x"}}, ErrMasterKeyLost},
		{MasterCommand{Args: []string{"/no/such/program"}}, ErrMasterKeyLost},
		{service{err: errFault}, errFault},
	} {
		opt := c.opt(9)
		opt.Master = x.source
		_, err := Open(opt)
		if wantErr(t, err, x.want); strings.Contains(err.Error(), text[:16]) {
			t.Fatalf("%v tells the key", err)
		}
	}
	opt := c.opt(9)
	opt.Master = service{key: *key}
	must[*DataKey](t)(mustOpen(t, opt).KeyByID(id))
}

func TestMasterKeyFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	source := MasterPath{Path: path}
	if _, err := source.MasterKey(t.Context()); !errors.Is(err, ErrMasterKeyLost) {
		t.Errorf("a file that is not there: %v", err)
	}
	want := strings.Repeat("ab", 32)
	if err := os.WriteFile(path, []byte(want+"\n"), 0o440); err != nil {
		t.Fatal(err)
	}
	key, err := source.MasterKey(t.Context())
	if err != nil || hex.EncodeToString(key[:]) != want {
		t.Errorf("got %x, %v", key, err)
	}
	for text, kind := range map[string]error{"": ErrMasterKeyLost, "secret\n": nil} {
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := source.MasterKey(t.Context())
		if err == nil || kind != nil && !errors.Is(err, kind) || text != "" && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if runtime.GOOS == "windows" {
		return // it has no such modes
	}
	for _, mode := range []os.FileMode{0o644, 0o604, 0o660} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := source.MasterKey(t.Context()); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestParseMasterSource(t *testing.T) {
	getenv := func(name string) string { return "value of " + name }
	secret := filepath.Join(t.TempDir(), "master.key")
	for setting, want := range map[string]MasterSource{
		"": nil, "file": nil, "env:KEY": MasterText{Name: "$KEY", Text: "value of KEY"},
		"file:" + secret:           MasterPath{Path: secret},
		"command:pass show  mneme": MasterCommand{Args: []string{"pass", "show", "mneme"}},
	} {
		got, err := ParseMasterSource(setting, getenv)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", setting, got, err)
		}
	}
	for _, bad := range []string{"env:", "env", "file:", "file:master.key", "command:", "command: ", "kms:x", "files", strings.Repeat("ab", 32)} {
		if _, err := ParseMasterSource(bad, getenv); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// service stands for what keeps keys elsewhere.
type service struct {
	key secret
	err error
}

func (s service) MasterKey(ctx context.Context) ([32]byte, error) {
	if _, limited := ctx.Deadline(); !limited {
		return [32]byte{}, errors.New("may hang for ever")
	}
	return s.key, s.err
}

func (service) String() string { return "service" }

// A first start that was cut short, or a master key that the operator placed, is
// no keyring: nothing can have been sealed yet.
func TestMasterKeyAloneIsNoKeyring(t *testing.T) {
	c := newDisk()
	left := 0
	crashes(t, c, 100, func() { mustOpen(t, c.opt(1)) }, func(cut *disk) {
		there, err := Exists(cut.MemFS, "data")
		if err != nil {
			t.Fatal(err)
		}
		opt := cut.opt(2)
		opt.AllowCreate, opt.AllowNewStorage = !there, false
		mustOpen(t, opt)
		if !there && len(cut.files()) > 0 {
			left++
		}
	})
	if left < 10 {
		t.Fatalf("only %d starts were cut short between the files", left)
	}
}

// TestMasterKeyThatDoesNotAnswer: a pipe that nobody writes to held up whoever asked, for ever.
func TestMasterKeyThatDoesNotAnswer(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "key")
	if err := exec.Command("mkfifo", "-m", "600", pipe).Run(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := (MasterPath{Path: pipe}).MasterKey(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // which lets the reading end
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
