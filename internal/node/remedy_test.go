package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

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
