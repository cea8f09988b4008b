package node

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/api"
	"mneme/internal/keyring"
	"mneme/memory"
)

// sealedUnderNewKeys runs a node through the making of keys. It returns its folder
// and, by name, what keys/ held before each making. The folder is that of a killed node.
func sealedUnderNewKeys(t *testing.T) (dir string, older map[string]string, records []string) {
	t.Helper()
	dir = t.TempDir()
	older = map[string]string{}
	stages := []struct {
		before string
		make   func(n *Node)
	}{
		{"nothing", func(n *Node) { records = append(records, must(t, n, "said of nobody").RecordID) }},
		{"the subjects", func(n *Node) {
			for _, who := range []string{"ada", "bob"} {
				records = append(records, mustBe(t, n, memory.Capture{Text: "said of " + who, Subject: who}).RecordID)
			}
		}},
		{"their combination", func(n *Node) {
			records = append(records, mustBe(t, n, memory.Capture{Text: "said of both", DerivedFrom: records[1:]}).RecordID)
		}},
		{"the namespace", func(n *Node) {
			if _, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "second"}); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for i, stage := range stages {
		if i > 0 {
			older[stage.before] = filepath.Join(image(t, dir), keyring.KeysDir)
		}
		n := open(t, quiet(dir))
		stage.make(n)
		if i == len(stages)-1 {
			dir = image(t, dir)
		}
		shut(t, n)
	}
	return dir, older, records
}

func mustBe(t *testing.T, n *Node, c memory.Capture) memory.CaptureResult {
	t.Helper()
	c.Agent = "tester"
	r, err := n.writes.Capture(context.Background(), "default", []memory.Capture{c}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
	if err != nil || r.Results[0].Error != nil {
		t.Fatalf("capture %+v: %+v, %v", c, r, err)
	}
	return r.Results[0]
}

// With keys/ of before a subject, a combination or a namespace, a node started,
// doctor and backup said that all is well, and the subject got a second key: no
// keyring opened all of the log any more.
func TestOlderKeysPutBackStopTheStart(t *testing.T) {
	t.Parallel()
	dir, older, records := sealedUnderNewKeys(t)
	off := Offline{Config: quiet("")}
	for before, keys := range older {
		for _, only := range []string{"", "keyring.v1"} { // the folder, or the keyring alone
			t.Run("before "+before+" "+only, func(t *testing.T) {
				e := image(t, dir)
				right := filepath.Join(image(t, dir), keyring.KeysDir)
				putKeys(t, keys, e, only)
				refusesOlderKeys(t, e)
				log, kept := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "keys")
				for _, to := range []string{log, ""} {
					if _, err := off.Backup(t.Context(), e, to, kept, nil); memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(memory.AsError(err).Hint, "keys/") {
						t.Errorf("backup to %q: %v", to, err)
					}
				}
				refusesOlderKeys(t, e)
				putKeys(t, right, e, "")
				n := open(t, quiet(e))
				for _, id := range records {
					if status := get(t, n, "/v1/namespaces/default/records/"+id); status != 200 {
						t.Errorf("with the right keys a record is answered by %d", status)
					}
				}
				if _, err := n.operator.Rebuild(t.Context(), nil); err != nil {
					t.Error(err)
				}
				shut(t, n)
				if r, err := off.Doctor(t.Context(), e); err != nil || !r.OK {
					t.Errorf("with the right keys: %+v, %v", r, err)
				}
				if _, err := off.Backup(t.Context(), e, log, kept, nil); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func refusesOlderKeys(t *testing.T, dir string) {
	t.Helper()
	if r, err := (Offline{Config: quiet("")}).Doctor(t.Context(), dir); err != nil || r.OK {
		t.Errorf("doctor: %+v, %v", r, err)
	}
	n, err := Open(t.Context(), quiet(dir))
	if err == nil {
		r, err := n.writes.Capture(t.Context(), "default", []memory.Capture{{Agent: "tester", Text: "again", Subject: "ada"}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
		t.Errorf("it started, a capture: %+v, %v", r, err)
		shut(t, n)
	}
	var s *StartError
	if !errors.As(err, &s) || s.Kind != StartLostKey || !strings.Contains(s.Hint, "keys/ folder back") {
		t.Errorf("start: %v", err)
	}
}

// putKeys puts keys/, or the copies of one file of it, in place of those of a node.
func putKeys(t *testing.T, from, dir, only string) {
	t.Helper()
	to := filepath.Join(dir, keyring.KeysDir)
	if only == "" {
		putBack(t, from, to)
		return
	}
	for _, name := range []string{only, only + ".copy"} {
		putBack(t, filepath.Join(from, name), filepath.Join(to, name))
	}
}
