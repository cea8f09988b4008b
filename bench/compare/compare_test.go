package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	var log bytes.Buffer
	opt, err := parse([]string{"-base", "main"}, &log)
	if err != nil || opt.pairs < 10 || opt.tolerance != 0.05 {
		t.Errorf("got %+v, %v", opt, err)
	}
	for _, args := range [][]string{nil, {"-base", "main", "-pairs", "1"}, {"-base", "main", "more"}, {"-base", "main", "-tolerance", "-1"}} {
		if _, err := parse(args, &log); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestPatchesApply fails when the sources that a patch changes have moved on.
func TestPatchesApply(t *testing.T) {
	patches, err := filepath.Glob("testdata/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatal(patches, err)
	}
	for _, patch := range patches {
		if err := change(t.Context(), filepath.Join("..", ".."), patch, "--check"); err != nil {
			t.Error(err)
		}
	}
}

// pairsOf makes pairs in which every metric of the tree is a multiple of the base's.
func pairsOf(ratios ...float64) []pair {
	out := make([]pair, len(ratios))
	for i, r := range ratios {
		for range metrics {
			out[i].base, out[i].tree = append(out[i].base, 100), append(out[i].tree, 100*r)
		}
	}
	return out
}

func TestCompareNamesWhatIsWorse(t *testing.T) {
	more := func(higher bool) (names []string) {
		for _, m := range metrics {
			if m.higher == higher {
				names = append(names, m.what)
			}
		}
		return names
	}
	for _, test := range []struct {
		pairs []pair
		want  []string
	}{
		{pairsOf(1, 1.01, 0.99, 1, 1.02), nil},
		{pairsOf(1.2, 1.21, 1.19, 1.2, 1.22), more(false)}, // larger is worse where less is better
		{pairsOf(0.8, 0.81, 0.79, 0.8, 0.82), more(true)},
		{pairsOf(0.8, 1.4, 0.7, 1.3, 1), nil}, // nobody can tell
	} {
		if _, got := compare(test.pairs, options{tolerance: 0.05, seed: 1}); !slices.Equal(got, test.want) {
			t.Errorf("ratios %v: worse is %q, want %q", test.pairs[0].tree, got, test.want)
		}
	}
}

func TestUnknownValuesAreLeftOut(t *testing.T) {
	p := pairsOf(1, 1)
	for i := range p {
		p[i].base[0] = 0
	}
	table, _ := compare(p, options{tolerance: 0.05})
	if len(table.Rows) != len(metrics)-1 {
		t.Errorf("%d rows of %d metrics, one of which is unknown", len(table.Rows), len(metrics))
	}
}

func TestCheckoutLeavesTheRepositoryAlone(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.email", "x@example.org"}, {"config", "user.name", "x"}} {
		git(t, args...)
	}
	write(t, "a/b.txt", "one")
	git(t, "add", ".")
	git(t, "commit", "-qm", "first")
	write(t, "a/b.txt", "two")
	into := filepath.Join(t.TempDir(), "source")
	if err := checkout(context.Background(), "HEAD", into); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(into, "a/b.txt")); err != nil || string(b) != "one" {
		t.Errorf("got %q, %v", b, err)
	}
	if b, err := os.ReadFile("a/b.txt"); err != nil || string(b) != "two" {
		t.Errorf("the working tree now holds %q, %v", b, err)
	}
	if err := checkout(context.Background(), "nothing", filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("an unknown revision: %v", err)
	}
}

func git(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
