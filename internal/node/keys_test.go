package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mneme/internal/keyring"
	"mneme/memory"
)

// lifeOfKeys starts a node on dir and ends it.
func lifeOfKeys(t *testing.T, cfg Config) error {
	t.Helper()
	n, err := Open(t.Context(), cfg)
	if err != nil {
		return err
	}
	if err := n.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return nil
}

// The first start was killed between two key files, or the operator had put a
// master key there: the folder holds no data, so the next start goes on.
func TestStartGoesOnWhereMakingTheKeysWasCutShort(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	if err := lifeOfKeys(t, quiet(whole)); err != nil {
		t.Fatal(err)
	}
	for _, kept := range [][]string{
		{"master.key"},
		{"master.key", "master.key.copy"},
		{"master.key", "master.key.copy", "node.secret"},
		{"master.key", "master.key.copy", "node.secret", "node.secret.copy", "storage.keys", "storage.keys.copy"},
		{"master.key", "master.key.copy", "node.secret", "node.secret.copy", "storage.keys", "storage.keys.copy", "keyring.v1"},
	} {
		for _, node := range []bool{false, true} {
			if len(kept) > 6 && !node {
				continue // a keyring without node.json is data
			}
			dir := t.TempDir()
			files := append([]string{}, kept...)
			for i := range files {
				files[i] = filepath.Join(keyring.KeysDir, files[i])
			}
			if node {
				files = append(files, nodeJSON)
			}
			for _, f := range files {
				b, err := os.ReadFile(filepath.Join(whole, f))
				if err == nil {
					err = os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o700)
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, f), b, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			err := lifeOfKeys(t, quiet(dir))
			if len(kept) > 6 {
				// It knows namespaces, whose log is not here.
				var s *StartError
				if !errors.As(err, &s) || s.Kind != StartDamaged {
					t.Fatalf("with a keyring: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%v, node.json %v: %v", kept, node, err)
			}
			before, _ := os.ReadFile(filepath.Join(whole, keyring.KeysDir, "master.key"))
			after, _ := os.ReadFile(filepath.Join(dir, keyring.KeysDir, "master.key"))
			if string(before) != string(after) {
				t.Fatal("the master key that was there was not used")
			}
		}
	}
}

func TestMasterKeyThatOthersMayReadStopsTheStart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := t.TempDir()
	if err := lifeOfKeys(t, quiet(dir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, keyring.KeysDir, "master.key")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	var s *StartError
	if err := lifeOfKeys(t, quiet(dir)); !errors.As(err, &s) || s.Kind != StartUsage || !strings.Contains(s.Hint, "chmod 600") || !strings.Contains(s.Message, path) {
		t.Fatalf("%v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lifeOfKeys(t, quiet(dir)); err != nil {
		t.Fatal("the remedy does not work:", err)
	}
}

// TestDoctorMissesTheMasterKey: a node that runs does not need the file, so nobody else would
// notice before the next start.
func TestDoctorMissesTheMasterKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, err := Open(t.Context(), quiet(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close(context.WithoutCancel(t.Context())) }()
	found := func() memory.Check {
		t.Helper()
		r, err := n.operator.Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Checks {
			if c.Name == "master key" {
				return c
			}
		}
		t.Fatalf("no such check: %+v", r)
		return memory.Check{}
	}
	if c := found(); c.State != "ok" {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{"master.key", "master.key.copy"} {
		if err := os.Remove(filepath.Join(dir, keyring.KeysDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if c := found(); c.State != "fail" || !strings.Contains(c.Detail, "master.key") || !strings.Contains(c.Hint, "memctl backup") {
		t.Errorf("%+v", c)
	}
}

func TestMasterKeyFromElsewhereLeavesNoneInTheFolder(t *testing.T) {
	dir := t.TempDir()
	cfg := quiet(dir)
	cfg.MasterKey = keyring.MasterText{Name: "$KEY", Text: strings.Repeat("1f", 32)}
	for range 2 {
		if err := lifeOfKeys(t, cfg); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, keyring.KeysDir, "master.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("a master key lies in the folder")
	}
	for _, other := range []keyring.MasterSource{nil, keyring.MasterText{Name: "$KEY", Text: strings.Repeat("2f", 32)}} {
		cfg.MasterKey = other
		var s *StartError
		if err := lifeOfKeys(t, cfg); !errors.As(err, &s) || s.Kind != StartLostKey || !strings.Contains(s.Hint, "--master-key") {
			t.Fatalf("%v", err)
		}
	}
}
