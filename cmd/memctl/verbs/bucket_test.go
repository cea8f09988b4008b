package verbs

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"mneme/memory"
)

// Backups and keys in two buckets, each with credentials of its own, which stand nowhere in
// what is printed.
func TestBackupsInBuckets(t *testing.T) {
	backend := s3mem.New()
	for _, name := range []string{"memories", "safe"} {
		if err := backend.CreateBucket(name); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewUnstartedServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const secret = "the-secret-that-nobody-sees"
	env := map[string]string{
		"AWS_ENDPOINT_URL":            srv.URL,
		"AWS_CA_BUNDLE":               file("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))),
		"AWS_ACCESS_KEY_ID":           "AKID",
		"AWS_SECRET_ACCESS_KEY":       secret,
		"AWS_SHARED_CREDENTIALS_FILE": file("credentials", "[keys]\naws_access_key_id = OTHER\naws_secret_access_key = "+secret+"\n"),
	}
	try := func(code int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		getenv := func(name string) string { return env[name] }
		sys := system{in: strings.NewReader(""), out: &out, err: &errs, getenv: getenv, isTerminal: func(any) bool { return false },
			now: time.Now, configDir: func() (string, error) { return dir, nil }, userName: func() string { return "u" }, version: memory.VersionInfo{Version: "v"}, offline: fakeWork(getenv, time.Now)}
		if got := run(t.Context(), sys, args); got != code {
			t.Errorf("memctl %v: exit %d, want %d: %s", args, got, code, errs.String())
		}
		all := out.String() + errs.String()
		if strings.Contains(all, secret) {
			t.Errorf("memctl %v prints the secret", args)
		}
		return all
	}
	to := []string{"--to", "s3://memories/team/a", "--keys-to", "s3://keys@safe/team/a"}
	from := []string{"--from", "s3://memories/team/a", "--keys-from", "s3://keys@safe/team/a"}
	for range 2 {
		try(0, append([]string{"backup", "--data-dir", "d"}, to...)...)
	}
	if out := try(0, append([]string{"backup", "verify"}, from...)...); !strings.Contains(out, "2 backups of the cluster") {
		t.Error(out)
	}
	if out := try(0, "backup", "list", "--from", "s3://memories/team/a"); strings.Count(out, "\n") != 3 {
		t.Error(out)
	}
	if out := try(0, append([]string{"backup", "drill"}, from...)...); !strings.Contains(out, "can be restored") {
		t.Error(out)
	}
	try(0, append([]string{"restore", "--data-dir", "new"}, from...)...)
	try(0, append([]string{"backup", "prune", "--keep", "1", "--yes"}, from...)...)
	try(3, "backup", "verify", "--from", "s3://memories/team")
	try(2, "backup", "list", "--from", "s3://memories2/team/a") // no such bucket
	try(2, "backup", "list", "--from", "s3://")
	try(2, "backup", "list", "--from", "s3://AKID:"+"key@memories/team/a")
	try(4, "backup", "list", "--from", "s3://nobody@memories/team/a")
	try(2, "backup", "--data-dir", "d", "--to", "s3://memories/a", "--keys-to", "s3://keys@memories/a/keys")
	env["AWS_CA_BUNDLE"] = ""
	if out := try(6, "backup", "list", "--from", "s3://memories/team/a"); !strings.Contains(out, "AWS_CA_BUNDLE") {
		t.Error(out)
	}
	env["AWS_CA_BUNDLE"] = filepath.Join(dir, "none")
	try(2, "backup", "list", "--from", "s3://memories/team/a")
}
