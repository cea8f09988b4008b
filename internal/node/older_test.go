package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/projections"
)

// age makes a stopped node's state one of the pipeline version before.
func age(t *testing.T, dir, identity string) {
	t.Helper()
	editRows(t, dir, func(_, value []byte) []byte {
		if identity == "" || !bytes.HasSuffix(value, []byte(identity)) {
			return nil
		}
		const pipeline = 91 // where the cursor's row has it
		out := bytes.Clone(value)
		if got := binary.BigEndian.Uint32(out[pipeline:]); got != projections.PipelineVersion {
			t.Fatalf("the row says pipeline version %d", got)
		}
		binary.BigEndian.PutUint32(out[pipeline:], projections.PipelineVersion-1)
		return out
	})
}

// TestStateOfAnOlderVersionIsBuiltAnew, from the log, unless the log does not
// hold what the state does.
func TestStateOfAnOlderVersionIsBuiltAnew(t *testing.T) {
	dir := t.TempDir()
	n := open(t, quiet(dir))
	must(t, n, "kept over an upgrade")
	identity, hash := n.served[0].state.Cursor().Identity, shardOf(t, n).StateHash
	shut(t, n)
	age(t, dir, identity)
	left := filepath.Join(dir, "shards", "0", "state") + ".next" // of a start that was cut short
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	n = open(t, quiet(dir))
	if got := shardOf(t, n).StateHash; got != hash {
		t.Errorf("hash %s, was %s", got, hash)
	}
	if got := find(t, n, "upgrade"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	must(t, n, "written after it")
	for _, suffix := range []string{".next", ".older"} {
		if _, err := os.Stat(filepath.Join(dir, "shards", "0", "state") + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", suffix, err)
		}
	}
	shut(t, n)
	age(t, dir, identity)
	if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
	e := fails(t, quiet(dir), StartDamaged)
	if !strings.Contains(e.Message, "pipeline version") || !strings.Contains(e.Hint, "log repair") {
		t.Errorf("%s; %s", e.Message, e.Hint)
	}
	if gen, err := filepath.Glob(filepath.Join(dir, "shards", "0", "state", "gen-*")); len(gen) != 1 || err != nil {
		t.Errorf("the only copy was taken away: %v %v", gen, err)
	}
}
