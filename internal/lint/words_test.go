package lint

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// word must not stand in a file of the project.
type word struct {
	pattern *regexp.Regexp
	why     string
}

var words = []word{
	{regexp.MustCompile(`(^|[^\w.-])/work/`), "an absolute path of one machine means nothing on another\n\ttake the path as an option, or make it relative to the repository"},
	{regexp.MustCompile(`\.\./shared`), "a folder beside the repository is there on one machine only\n\tlook for it in a test or benchmark, and skip plainly without it"},
	{regexp.MustCompile(`^(<{7}|>{7}) `), "a merge was not finished\n\tresolve it"},
}

// checkWords looks through one file. Tests and benchmarks may look for data
// beside the repository.
func checkWords(name string, text []byte) []string {
	if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "bench/") || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	var bad []string
	for i, line := range bytes.Split(text, []byte("\n")) {
		for _, w := range words {
			if m := w.pattern.Find(line); m != nil {
				bad = append(bad, fmt.Sprintf("%s:%d: %q: %s", name, i+1, bytes.TrimSpace(m), w.why))
			}
		}
	}
	return bad
}

func TestNoWordsOfOneMachine(t *testing.T) {
	top := root(t)
	for _, name := range tracked(t, top) {
		info, err := os.Lstat(filepath.Join(top, name))
		if err != nil || !info.Mode().IsRegular() || info.Size() > 4<<20 {
			continue // deleted meanwhile, a link, or data
		}
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		reportAll(t, checkWords(name, text))
	}
}

// tracked lists the files that are or would be committed.
func tracked(t *testing.T, top string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("the files of the project are known from git, which does not answer: %v", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

func TestWordRuleBites(t *testing.T) {
	expect(t, checkWords("a.md", []byte("see /work/main\n")), "a.md:1:")
	expect(t, checkWords("a.md", []byte("fine\nsee ../shared/x\n")), "a.md:2:")
	expect(t, checkWords("a.go", []byte("<<<<<<< ours\n")), "merge")
	expect(t, checkWords("a.md", []byte("./work/x and net/work/x\n")))
	expect(t, checkWords("a_test.go", []byte("../shared/data")))
	expect(t, checkWords("bench/a.go", []byte("../shared/data")))
	expect(t, checkWords("a.bin", []byte("\x00/work/")))
}
