package node

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// TestDataDirectoryThatOthersMayWriteTo: one of mode 0777 was accepted, and doctor
// said that all is well.
func TestDataDirectoryThatOthersMayWriteTo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	n := open(t, quiet(dir)) // an empty one is made fit
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	found := func() memory.Check {
		t.Helper()
		report, err := n.doctor.Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return report.Checks[slices.IndexFunc(report.Checks, func(c memory.Check) bool { return c.Name == "data directory" })]
	}
	if c := found(); c.State != "ok" {
		t.Errorf("%+v", c)
	}
	for _, mode := range []os.FileMode{0o777, 0o720, 0o702} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if c := found(); c.State != "fail" || c.Hint != "chmod 700 "+dir {
			t.Errorf("%o: %+v", mode, c)
		}
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var s *StartError
	if err := lifeOfKeys(t, quiet(dir)); !errors.As(err, &s) || s.Kind != StartUsage || !strings.Contains(s.Hint, "chmod 700 "+dir) {
		t.Errorf("start: %v", err)
	}
	if _, err := (Offline{Config: quiet(dir)}).Doctor(t.Context(), dir); memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(memory.AsError(err).Hint, "chmod 700 "+dir) {
		t.Errorf("doctor: %v", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := lifeOfKeys(t, quiet(dir)); err != nil {
		t.Error("the remedy does not work:", err)
	}
}
