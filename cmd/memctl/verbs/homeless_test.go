package verbs

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestWhoHasNoHomeWasSentToALog: a program that is started without HOME was told to look into the node's log.
func TestWhoHasNoHomeWasSentToALog(t *testing.T) {
	for _, args := range [][]string{{"use", "team-a", "--addr", "http://127.0.0.1:1"}, {"integrate", "codex", "--scope", "user"}} {
		var errs bytes.Buffer
		sys := userSystem(t.TempDir(), ".", "", &bytes.Buffer{}, &errs)
		none := func() (string, error) { return "", errors.New("$HOME is not defined") }
		sys.configDir, sys.home = none, none
		if code := run(t.Context(), sys, args); code != 2 || !strings.Contains(errs.String(), "hint: set HOME") {
			t.Errorf("%v ends with %d: %s", args, code, errs.String())
		}
	}
}
