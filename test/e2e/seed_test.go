package e2e

import (
	"os"
	"strconv"
	"testing"
)

// seedOf is MNEME_E2E_SEED or the test's own; it is printed with the line that
// reproduces the run.
func seedOf(t *testing.T, own uint64) uint64 {
	t.Helper()
	if s := os.Getenv("MNEME_E2E_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		own = n
	}
	t.Logf("reproduce: MNEME_E2E_SEED=%d go test -run '^%s$' ./test/e2e", own, t.Name())
	return own
}
