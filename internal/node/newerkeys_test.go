package node

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"mneme/memory"
)

// TestNamespaceOfAnOlderLogAndNewerKeysWasAGhost: a log that was backed up before a
// namespace was deleted, with keys of after it, as one backup of a running node has
// them where the deletion falls between the two. The namespace was listed, could
// not be read or deleted, and held its name for ever.
func TestNamespaceOfAnOlderLogAndNewerKeysWasAGhost(t *testing.T) {
	t.Parallel()
	n := open(t, quiet(t.TempDir()))
	doomed(t, n)
	out := t.TempDir()
	log, keys := filepath.Join(out, "log"), filepath.Join(out, "keys")
	write := func(path string, backup func(w *bytes.Buffer) (memory.BackupReport, error)) {
		t.Helper()
		var b bytes.Buffer
		_, err := backup(&b)
		if err == nil {
			err = os.WriteFile(path, b.Bytes(), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(log, func(b *bytes.Buffer) (memory.BackupReport, error) { return n.operator.BackupLog(t.Context(), b, "") })
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	write(keys, func(b *bytes.Buffer) (memory.BackupReport, error) { return n.operator.BackupKeys(t.Context(), b, true) })
	shut(t, n)
	dir := filepath.Join(out, "restored")
	if _, err := (Offline{Config: quiet("")}).Restore(t.Context(), dir, log, keys, nil); err != nil {
		t.Fatal(err)
	}
	n = open(t, quiet(dir))
	await(t, "the namespace to end", func() bool {
		_, err := n.reads.Namespace(t.Context(), "doomed")
		return memory.CodeOf(err) == memory.CodeNotFound
	})
	erased(t, n)
	if _, err := n.operator.Rebuild(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "doomed"}); err != nil {
		t.Error(err)
	}
	postOK(t, n, "/v1/namespaces/doomed/events", map[string]any{"agent": "tester", "text": "the name is free"})
	if got := find(t, n, "gardener"); len(got) == 0 {
		t.Error("the other namespace is gone")
	}
	shut(t, n)
}
