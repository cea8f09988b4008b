package node

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats-server/v2/server"

	"mneme/internal/keyring"
	"mneme/memory"
)

// externalNATSServer is a NATS that is not the node's.
func externalNATSServer(t *testing.T) (address string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(),
		Username: "mneme", Password: "pass@word", NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS is not ready")
	}
	return strings.TrimPrefix(s.ClientURL(), "nats://")
}

// TestOfflineWorkTookAnExternalLogForADamagedOne: it opened an empty one in the
// directory, and the repair that it advised wrote the whole log there.
func TestOfflineWorkTookAnExternalLogForADamagedOne(t *testing.T) {
	address, dir := externalNATSServer(t), t.TempDir()
	cfg := quiet(dir)
	cfg.NATSURL, cfg.Dev = "nats://mneme:pass%40word@"+address, true
	n := open(t, cfg)
	must(t, n, "kept far away")
	shut(t, n)
	off, out := Offline{Config: quiet("")}, t.TempDir()
	for name, work := range map[string]func() error{
		"doctor": func() error { _, err := off.Doctor(t.Context(), dir); return err },
		"verify": func() error { _, err := off.VerifyLog(t.Context(), dir, nil); return err },
		"repair": func() error { _, err := off.RepairLog(t.Context(), dir, nil); return err },
		"backup": func() error {
			_, err := off.Backup(t.Context(), dir, filepath.Join(out, "log"), filepath.Join(out, "keys"), nil)
			return err
		},
	} {
		e := memory.AsError(work())
		if e == nil || e.Code != memory.CodeInvalid || !strings.Contains(e.Hint, "--nats-url nats://"+address) {
			t.Errorf("%s: %v, hint %q", name, e, e.Hint)
		}
	}
	fails(t, quiet(dir), StartUsage)
	if _, err := os.Stat(filepath.Join(dir, "nats")); !os.IsNotExist(err) {
		t.Errorf("there is a log in the directory: %v", err)
	}
	for _, name := range []string{nodeJSON, nodeCopy} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || strings.Contains(string(b), "word") {
			t.Errorf("%s tells the password: %s %v", name, b, err)
		}
	}
	n = open(t, cfg) // the remedy
	must(t, n, "and it goes on")
	if doctor, err := n.operator.Doctor(t.Context()); err != nil || !doctor.OK {
		t.Errorf("asked online: %+v, %v", doctor, err)
	}
}

// TestForeignStorageKeysAskedForTheMasterKey, which was in its place.
func TestForeignStorageKeysAskedForTheMasterKey(t *testing.T) {
	dir, want := filled(t)
	other, _ := filled(t)
	names := []string{filepath.Join("keys", "storage.keys"), filepath.Join("keys", "storage.keys.copy")}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(other, name))
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	e := fails(t, quiet(dir), StartLostKey)
	if !strings.Contains(e.Message, "storage.keys does not belong") || !strings.Contains(e.Hint, "move both files and shards/ out") {
		t.Errorf("%s; %s", e.Message, e.Hint)
	}
	away := t.TempDir()
	for _, name := range append(names, "shards") {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(away, filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	if got := shardOf(t, open(t, quiet(dir))); got.StateHash != want.StateHash {
		t.Errorf("state %s, want %s", got.StateHash, want.StateHash)
	}
}

// edit replaces a file by what f makes of it.
func edit(t *testing.T, path string, f func([]byte)) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f(b)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOlderKeyringWasCalledDamaged: nothing said that the program that wrote it
// can export the memories.
func TestOlderKeyringWasCalledDamaged(t *testing.T) {
	dir, _ := filled(t)
	off := Offline{Config: quiet("")}
	log, keys := backUp(t, dir)
	const version = 8
	seal := func(b []byte, end int) {
		b[version] = 1
		sum := sha256.Sum256(b[:end])
		copy(b[end:], sum[:])
	}
	for _, name := range []string{"keyring.v1", "keyring.v1.copy"} {
		edit(t, filepath.Join(dir, "keys", name), func(b []byte) { seal(b, 25+int(binary.BigEndian.Uint64(b[17:]))) })
	}
	edit(t, keys, func(b []byte) { seal(b, len(b)-sha256.Size) })
	const remedy = "export the memories with the version of Mneme that wrote them"
	if e := fails(t, quiet(dir), StartNewer); !strings.Contains(e.Hint, remedy) || strings.Contains(e.Message, "damaged") {
		t.Errorf("%s; %s", e.Message, e.Hint)
	}
	doctor, err := off.Doctor(t.Context(), dir)
	if err != nil || doctor.OK || !strings.Contains(doctor.Checks[0].Hint, remedy) {
		t.Errorf("doctor: %+v, %v", doctor, err)
	}
	_, err = off.Restore(t.Context(), filepath.Join(t.TempDir(), "new"), log, keys, nil)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeLogDiverged || !strings.Contains(e.Hint, remedy) {
		t.Errorf("restore: %v", err)
	}
}

// TestBackupLeftANewLogBesideOldKeys, which did not open it.
func TestBackupLeftANewLogBesideOldKeys(t *testing.T) {
	dir, _ := filled(t)
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("the older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Offline{Config: quiet("")}.Backup(t.Context(), dir, log, filepath.Join(log, "no", "folder"), nil)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeInvalid || e.Hint == "" {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(log); err != nil || string(b) != "the older one" {
		t.Errorf("the log is another: %d bytes, %v", len(b), err)
	}
}

// TestSourceWithoutAKeyAskedForAFile: a variable that is not set, or holds no key,
// is what is wrong, not the data.
func TestSourceWithoutAKeyAskedForAFile(t *testing.T) {
	for text, message := range map[string]string{"": "$KEY is empty or not set", "hunter2": "$KEY is no master key"} {
		cfg := quiet(t.TempDir())
		cfg.MasterKey = keyring.MasterText{Name: "$KEY", Text: text}
		e := fails(t, cfg, StartLostKey)
		if !strings.Contains(e.Message, message) || !strings.Contains(e.Hint, "64 hexadecimal digits") || strings.Contains(e.Message, "hunter2") {
			t.Errorf("%q: %s; %s", text, e.Message, e.Hint)
		}
		cfg.MasterKey = keyring.MasterText{Name: "$KEY", Text: strings.Repeat("1f", 32)}
		shut(t, open(t, cfg)) // the remedy
	}
}

// TestLogMovedAsideIsWrittenAgainOffline, as the remedy for a store that does not
// load says.
func TestLogMovedAsideIsWrittenAgainOffline(t *testing.T) {
	dir, want := filled(t)
	if err := os.Rename(filepath.Join(dir, "nats"), filepath.Join(t.TempDir(), "nats")); err != nil {
		t.Fatal(err)
	}
	if r, err := (Offline{Config: quiet("")}).RepairLog(t.Context(), dir, nil); err != nil || r.Shards[0].Restored == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	n := open(t, quiet(dir))
	must(t, n, "and it goes on")
	if got := shardOf(t, n); got.Records != want.Records+1 {
		t.Errorf("%d records, want %d", got.Records, want.Records+1)
	}
}

// TestNamespaceWithCapitalsLostItsHint on the way from the flag.
func TestNamespaceWithCapitalsLostItsHint(t *testing.T) {
	cfg := quiet(t.TempDir())
	cfg.Namespaces = []string{"Team-A"}
	if e := fails(t, cfg, StartUsage); e.Hint != `did you mean "team-a"?` {
		t.Errorf("hint %q: %v", e.Hint, e)
	}
}

// TestKeysOfAnotherBackupAskedForTheFolderOfThisOne: they are intact, and nothing was
// there to be put back.
func TestKeysOfAnotherBackupAskedForTheFolderOfThisOne(t *testing.T) {
	off, out := Offline{Config: quiet("")}, t.TempDir()
	var keys, logs [2]string
	for i := range keys {
		dir, _ := filled(t)
		logs[i], keys[i] = filepath.Join(out, fmt.Sprint("log", i)), filepath.Join(out, fmt.Sprint("keys", i))
		if _, err := off.Backup(t.Context(), dir, logs[i], keys[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(out, "new")
	_, err := off.Restore(t.Context(), to, logs[0], keys[1], nil)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeLogDiverged || !strings.Contains(e.Message, "the keys given do not open "+logs[0]) ||
		!strings.Contains(e.Hint, "keys of the same backup") {
		t.Errorf("%v; %s", err, memory.AsError(err).Hint)
	}
	if _, err := off.Restore(t.Context(), to, logs[0], keys[0], nil); err != nil { // the remedy
		t.Error(err)
	}
}

// deniedFS lets nobody look at any file.
type deniedFS struct{ vfs.FS }

func (deniedFS) Stat(name string) (vfs.FileInfo, error) {
	return nil, &fs.PathError{Op: "stat", Path: name, Err: syscall.EACCES}
}

// TestDirectoryOfAnotherUserWasNoDataDirectory: doctor was asked for the one that
// memnode used, and it had been given that.
func TestDirectoryOfAnotherUserWasNoDataDirectory(t *testing.T) {
	dir, _ := filled(t)
	cfg := quiet("")
	cfg.FS = deniedFS{vfs.Default}
	_, err := (Offline{Config: cfg}).Doctor(t.Context(), dir)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeInvalid || !strings.Contains(e.Message, "permission denied") || e.Hint == "" {
		t.Errorf("%v", err)
	}
}

// TestEmbedderOfTheFirstNamespaceHadNoRemedy that somebody at memnode could follow.
func TestEmbedderOfTheFirstNamespaceHadNoRemedy(t *testing.T) {
	cfg := quiet(t.TempDir())
	cfg.Embedder.Provider, cfg.Embedder.Dir = "local", t.TempDir()
	if e := fails(t, cfg, StartOther); !strings.Contains(e.Message, "config.json: is missing") || !strings.Contains(e.Hint, "--embedder builtin") {
		t.Errorf("%s; %s", e.Message, e.Hint)
	}
}

// TestFolderOfTheAdminSocket that is not there is a mistake in the settings.
func TestFolderOfTheAdminSocket(t *testing.T) {
	cfg := quiet(t.TempDir())
	cfg.AdminSocket = filepath.Join(cfg.DataDir, "no", "s")
	if e := fails(t, cfg, StartUsage); !strings.Contains(e.Message, "there is no folder") || e.Hint == "" {
		t.Errorf("%s; %s", e.Message, e.Hint)
	}
}

// TestTokenThatOthersReadWasDamage: it is a mode, as that of any other file in keys/,
// and one of the two remedies keeps the token.
func TestTokenThatOthersReadWasDamage(t *testing.T) {
	cfg := quiet(t.TempDir())
	cfg.Auth = "token"
	shut(t, open(t, cfg))
	file := filepath.Join(cfg.DataDir, "keys", "operator.token")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if e := fails(t, cfg, StartUsage); !strings.Contains(e.Hint, "chmod 600 "+file) || strings.Count(e.Message, "operator token") != 1 {
		t.Errorf("%s; %s", e.Message, e.Hint)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, cfg)) // the remedy
}

// TestDoctorNamedAThousandProblemsInALine, in brackets.
func TestDoctorNamedAThousandProblemsInALine(t *testing.T) {
	r := memory.VerifyShard{Problems: []string{"sequence 1: a", "sequence 2: b"}}
	if got := problems(r); got != "sequence 1: a; sequence 2: b" {
		t.Error(got)
	}
	for len(r.Problems) < 1000 {
		r.Problems = append(r.Problems, "sequence 3: c")
	}
	if got := problems(r); got != "sequence 1: a; sequence 2: b; sequence 3: c; and 997 more" {
		t.Error(got)
	}
}
