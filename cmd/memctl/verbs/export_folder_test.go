package verbs

import (
	"os"
	"path/filepath"
	"testing"

	"mneme/memory"
)

// TestExportDoesNotFollowALinkedMonth: what an export writes and removes lies in its folder.
func TestExportDoesNotFollowALinkedMonth(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "2016-07")); err != nil {
		t.Fatal(err)
	}
	e := &folderExport{dir: dir, before: map[string]string{}, now: map[string]string{}}
	err := e.write(memory.Record{RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Namespace: "lab", Version: 1, Text: "one"})
	if memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("%v", err)
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) != 0 {
		t.Errorf("it wrote %v, %v", found, err)
	}
}
