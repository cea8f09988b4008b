package node

import (
	"errors"
	goflag "flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// Flags of TestFlippedBits: how many bits of each kind of file, and which.
var (
	flipBits = goflag.Int("flips", 4, "flip so many bits of each kind of file")
	flipSeed = goflag.Uint64("flipseed", 1, "flip the bits of this seed; 0 = any")
)

// TestFlippedBits: whatever bit of whatever file flips while a node is stopped, the
// next start heals it, or stops writes and the remedy that it names works, or ends
// with a typed error and a remedy. Nothing acknowledged is ever missing from a node
// that says all is well.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	seed := *flipSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("reproduce: go test -run '^%s$' ./internal/node -flips %d -flipseed %d", t.Name(), *flipBits, seed)
	dir, want := flippable(t)
	kinds := filesByKind(t, dir)
	names := make([]string, 0, len(kinds))
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	for _, kind := range names {
		t.Run(strings.ReplaceAll(kind, "/", "_"), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, uint64(slices.Index(names, kind))))
			ended := map[string]int{}
			for range *flipBits {
				file := kinds[kind][rng.IntN(len(kinds[kind]))]
				copied := image(t, dir)
				bit := flipOne(t, filepath.Join(copied, file), rng)
				ended[startFlipped(t, fmt.Sprintf("bit %d of %s", bit, file), copied, want)]++
			}
			t.Log(ended)
		})
	}
}

// flippable is a stopped node's directory with a file of every kind.
func flippable(t *testing.T) (string, memory.ShardStatus) {
	t.Helper()
	dir := t.TempDir()
	cfg := quiet(dir)
	cfg.Auth, cfg.SnapshotThreshold = "token", 8
	n := open(t, cfg)
	for i := range 20 {
		must(t, n, fmt.Sprint("memory of the harbour, number ", i))
	}
	if err := n.served[0].replica.Group().Snapshot(); err != nil {
		t.Fatal(err)
	}
	must(t, n, "behind the snapshot")
	want := shardOf(t, n)
	shut(t, n)
	return dir, want
}

var digits = regexp.MustCompile(`[0-9a-f]{6,}|[0-9]+`)

// filesByKind groups the files of a directory whose names differ in numbers only.
func filesByKind(t *testing.T, dir string) map[string][]string {
	t.Helper()
	kinds := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() == 0 {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		kind := digits.ReplaceAllString(filepath.ToSlash(rel), "N")
		kinds[kind] = append(kinds[kind], rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func flipOne(t *testing.T, path string, rng *rand.Rand) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bit := rng.IntN(len(b) * 8)
	b[bit/8] ^= 1 << (bit % 8)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return bit
}

// startFlipped starts a node and says how that ended.
func startFlipped(t *testing.T, what, dir string, want memory.ShardStatus) string {
	t.Helper()
	cfg := quiet(dir)
	cfg.Auth = "token"
	n, err := Open(t.Context(), cfg)
	var refused *StartError
	switch {
	case errors.As(err, &refused) && refused.Kind != StartOther && refused.Hint != "":
		return refused.Kind
	case err != nil:
		t.Errorf("%s: %v", what, err)
		return "wrong"
	}
	defer shut(t, n)
	how := "healed"
	report, err := n.operator.VerifyLog(t.Context(), nil)
	if err != nil {
		t.Errorf("%s: verify: %v", what, err)
		return "wrong"
	}
	if !report.Shards[0].OK {
		how = "repaired"
		if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
			t.Errorf("%s: %s; repair: %v", what, report.Shards[0].Hint, err)
			return "wrong"
		}
	}
	if got := shardOf(t, n); got.StateHash != want.StateHash || got.Records != want.Records || got.Log.Diverged != "" {
		t.Errorf("%s: %s, but %+v is not %+v", what, how, got, want)
	}
	must(t, n, "life goes on")
	return how
}
