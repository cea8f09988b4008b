package node

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
)

// A node keeps its identity over a power loss right after its first start.
func TestNodeKeepsItsIdentityOverAPowerLoss(t *testing.T) {
	path, ids := t.TempDir(), events.NewIDSource(time.Now, nil)
	open := func(fs vfs.FS, mustExist bool) nodeFile {
		t.Helper()
		d, err := openDataDir(fs, path, "", ids, mustExist)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.close(); err != nil {
			t.Fatal(err)
		}
		return d.node
	}
	fs := vfs.NewCrashableMem()
	want := open(fs, false)
	if got := open(fs.CrashClone(vfs.CrashCloneCfg{}), true); !reflect.DeepEqual(got, want) {
		t.Errorf("the node was %+v and is %+v", want, got)
	}
}

// One copy of node.json heals the other: a single flipped bit used to end in
// exit 7.
func TestNodeFileHealsFromItsCopy(t *testing.T) {
	path, ids := t.TempDir(), events.NewIDSource(time.Now, nil)
	open := func() (nodeFile, error) {
		d, err := openDataDir(vfs.Default, path, "", ids, true)
		if err != nil {
			return nodeFile{}, err
		}
		return d.node, d.close()
	}
	d, err := openDataDir(vfs.Default, path, "", ids, false)
	if err = errors.Join(err, d.close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(path, nodeJSON))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{nodeJSON, nodeCopy} {
		for what, damage := range map[string]func(string) error{
			"removed": os.Remove,
			"empty":   func(p string) error { return os.WriteFile(p, nil, 0o600) },
			"flipped": func(p string) error {
				b := append([]byte(nil), whole...)
				b[len(b)/2] ^= 1
				return os.WriteFile(p, b, 0o600)
			},
		} {
			if err := damage(filepath.Join(path, name)); err != nil {
				t.Fatal(err)
			}
			if got, err := open(); err != nil || !reflect.DeepEqual(got, d.node) {
				t.Errorf("%s %s: %+v, %v", name, what, got, err)
			}
			if b, err := os.ReadFile(filepath.Join(path, name)); err != nil || string(b) != string(whole) {
				t.Errorf("%s %s: not healed: %q, %v", name, what, b, err)
			}
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(path, nodeJSON), nil, 0o600), os.WriteFile(filepath.Join(path, nodeCopy), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var e *StartError
	if _, err := open(); !errors.As(err, &e) || e.Kind != StartDamaged || e.Hint == "" {
		t.Errorf("both damaged: %v", err)
	}
}

// TestForeignFolderWasTakenForAnEmptyOne: a node put its files among somebody else's.
func TestForeignFolderWasTakenForAnEmptyOne(t *testing.T) {
	ids := events.NewIDSource(time.Now, nil)
	for _, tc := range []struct {
		name  string
		holds []string // a name that ends in a slash is a folder
		taken bool
	}{
		{"nothing", nil, true},
		{"a mounted volume", []string{"lost+found/", ".Trash-0/"}, true},
		{"a configuration", []string{"config.yaml"}, true},
		{"a master key for the first start", []string{"keys/", "notes.txt"}, true},
		{"a lock that a failed start left", []string{lockFile, "notes.txt"}, true},
		{"a file", []string{"notes.txt"}, false},
		{"a project", []string{".git/", "config.yaml", "cmd/"}, false},
	} {
		path := t.TempDir()
		for _, name := range tc.holds {
			err := os.MkdirAll(filepath.Join(path, name), 0o700)
			if name[len(name)-1] != '/' {
				err = errors.Join(os.Remove(filepath.Join(path, name)), os.WriteFile(filepath.Join(path, name), nil, 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		d, err := openDataDir(vfs.Default, path, "", ids, false)
		if tc.taken {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			} else if err := d.close(); err != nil {
				t.Error(err)
			}
			continue
		}
		var e *StartError
		if !errors.As(err, &e) || e.Kind != StartUsage || e.Hint == "" {
			t.Errorf("%s: %v", tc.name, err)
		}
		if left, err := os.ReadDir(path); err != nil || len(left) != len(tc.holds) {
			t.Errorf("%s: %v is there now, %v", tc.name, left, err)
		}
	}
}
