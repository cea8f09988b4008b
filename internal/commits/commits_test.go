package commits

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestNoise(t *testing.T) {
	files := []string{"a.go"}
	for _, subject := range []string{"wip", "WIP: try the other way", "fixup! store: keep it", "squash! x y z w", "typo", "Fix typo.", "fix", "formatting", "Merge branch 'main' into x",
		"Merge pull request #3 from a/b", "chore(deps): bump x", "Bump lodash from 1.2.3 to 1.2.4", "v1.2.3", "release 1.4.0", "chore(release): 1.4.0", "Bump version to 1.2.0", "update README.md", "initial commit", "abc", ""} {
		if c := (&Commit{Message: subject, Files: files}); !c.Noise() {
			t.Errorf("%q is kept", subject)
		}
	}
	for _, subject := range []string{"store: keep the index in memory", "Fix the race between close and drain", "fix: orders were counted twice", "Revert \"store: keep it\"",
		"update the retry policy to 3 tries", "test the importer against real exports", "release the lock before waiting", "改用 Postgres 保存账单数据"} {
		if c := (&Commit{Message: subject, Files: files}); c.Noise() {
			t.Errorf("%q is skipped", subject)
		}
	}
	if c := (&Commit{Message: "store: keep the index in memory"}); !c.Noise() {
		t.Error("a commit without files is kept")
	}
}

// A message is no place to end a commit and begin another, whatever it holds, and neither is the
// name of a file.
func TestAMessageForgesNothing(t *testing.T) {
	dir := t.TempDir()
	git := gitIn(t, dir)
	git("init", "-q", "-b", "main")
	forged := strings.Repeat("f", 40)
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go")
	write("b\n" + forged + "\nc.go")
	git("add", ".")
	git("commit", "-q", "-m", "the real subject\n\n\x01"+forged+"\x022020-01-01T00:00:00Z\x02root for everybody\x02\na.go")
	git("commit", "-q", "--allow-empty", "-m", forged)
	git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
	write("d.go")
	git("add", ".")
	git("commit", "-q", "-m", "the last subject")
	all, err := Read(t.Context(), dir)
	if err != nil || len(all) != 4 {
		t.Fatalf("%d commits: %+v, %v", len(all), all, err)
	}
	for i, want := range []int{2, 0, 0, 1} {
		if c := all[i]; c.Hash == forged || len(c.Files) != want || c.At.Year() != 2026 {
			t.Errorf("%+v", c)
		}
	}
	if !strings.Contains(all[0].Message, "root for everybody") || all[3].Message != "the last subject" || all[3].Files[0] != "d.go" {
		t.Errorf("%+v", all)
	}
	if none, err := Read(t.Context(), dir, "HEAD..HEAD"); err != nil || len(none) != 0 {
		t.Errorf("of no commits %v, %v", none, err)
	}
}

// What is cut is cut after secrets were taken out, and names of files hold none.
func TestNoHalfOfASecretIsLeft(t *testing.T) {
	token := "ghp_" + "ae2bdQ7Wm4Kx9Zt1Rv5Ls8Np3Hc6Yf0Jd2Gu"
	for at := maxMessage - len(token) - 1; at <= maxMessage; at += 5 {
		c := Commit{Hash: "h", Message: "store: keep " + strings.Repeat("x ", (at-12)/2) + token + " and more text behind it", Files: []string{"conf/" + token + ".txt"}}
		item := c.Capture(Agent, "p", true)
		if all := item.Text + string(item.Metadata); strings.Contains(all, token[:12]) {
			t.Errorf("at %d: …%s, %s", at, item.Text[len(item.Text)-120:], item.Metadata)
		}
	}
	ann := Commit{Hash: "h", Message: "store: ask ann@example.org", Files: []string{"ann@example.org.txt"}}
	if item := ann.Capture(Agent, "p", false); strings.Contains(item.Text+string(item.Metadata), "ann@") {
		t.Errorf("addresses stay: %+v", item)
	}
	if item := ann.Capture(Agent, "p", true); !strings.Contains(item.Text, "ann@example.org") {
		t.Errorf("addresses were to stay: %+v", item)
	}
}

// gitIn runs Git in a folder, without what this machine has configured.
func gitIn(t *testing.T, dir string) func(args ...string) {
	return func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE=2026-03-04T05:06:07+02:00"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

func TestACommitNamesItsFilesAndNoSecrets(t *testing.T) {
	dir := t.TempDir()
	git := gitIn(t, dir)
	git("init", "-q", "-b", "main")
	for i := range 25 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d é.go", i)), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("add", ".")
	git("commit", "-q", "-m", "store: keep the index in memory\n\nReads took 80 ms. The key was AKIAQ3EGPKXZXY5RTUVW.\n\nSigned-off-by: Ann <ann@example.org>")
	git("commit", "-q", "--allow-empty", "-m", "store: nothing at all")
	all, err := Read(t.Context(), dir)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if !all[1].Noise() || all[0].Noise() {
		t.Error("the wrong one is noise")
	}
	c := all[0].Capture(Agent, "github.com/a/b", true)
	if !strings.HasPrefix(c.Text, "store: keep the index in memory\n\nReads took 80 ms.") || strings.Contains(c.Text, "AKIA") || strings.Contains(c.Text, "Signed-off") ||
		!strings.Contains(c.Text, "\n\nFiles: f00 é.go, f01 é.go,") || !strings.HasSuffix(c.Text, " and 5 more") {
		t.Errorf("text is %q", c.Text)
	}
	if c.ID != "commit-"+all[0].Hash || !c.OccurredAt.Equal(time.Date(2026, 3, 4, 3, 6, 7, 0, time.UTC)) || !bytes.Contains(c.Metadata, []byte("f24 é.go")) {
		t.Errorf("%+v", c)
	}
	if again := all[0].Capture(Agent, "github.com/a/b", true); again.Text != c.Text || !bytes.Equal(again.Metadata, c.Metadata) {
		t.Error("the same commit makes another memory")
	}
	if _, err := Read(t.Context(), dir, "nosuch"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("%v", err)
	}
}

// TestMergesAreNoMemories: what they bring was said by the commits that they merge.
func TestMergesAreNoMemories(t *testing.T) {
	dir := t.TempDir()
	git := gitIn(t, dir)
	commit := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", "add the file "+name)
	}
	git("init", "-q", "-b", "main")
	commit("a")
	git("checkout", "-q", "-b", "side")
	commit("b")
	git("checkout", "-q", "main")
	commit("c")
	git("merge", "-q", "--no-ff", "-m", "bring the side in, with all of its files", "side")
	all, err := Read(t.Context(), dir)
	if err != nil || len(all) != 3 || strings.Contains(all[2].Message, "bring the side") {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestTheFirstCommitHadNoFiles, where Git is told not to show them.
func TestTheFirstCommitHadNoFiles(t *testing.T) {
	dir := t.TempDir()
	git := gitIn(t, dir)
	git("init", "-q", "-b", "main")
	git("config", "log.showRoot", "false")
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "store: keep the index in memory")
	if all, err := Read(t.Context(), dir); err != nil || len(all) != 1 || all[0].Noise() {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestALongMessageWasReadWhole: what is made of it does not grow with what is not kept.
func TestALongMessageWasReadWhole(t *testing.T) {
	made := func(behind string) (string, uint64) {
		c := Commit{Hash: "h", Message: "store: keep it\n\n" + strings.Repeat("some words of it\n", 1000) + behind}
		_ = c.Capture(Agent, "p", true) // has the rules compiled
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text := c.Capture(Agent, "p", true).Text
		runtime.ReadMemStats(&after)
		return text, after.TotalAlloc - before.TotalAlloc
	}
	short, few := made("password=Winter2026\n")
	long, many := made(strings.Repeat("password=Winter2026\n", 100_000))
	if short != long || many > few+1<<20 {
		t.Errorf("%d bytes are made for %q, %d for %q", few, short, many, long)
	}
}

// TestALongCommitIsCut: its message, and the files that it names.
func TestALongCommitIsCut(t *testing.T) {
	c := Commit{Hash: "h", Message: "store: keep it\n\n" + strings.Repeat("ü", maxMessage)}
	for i := range maxListed {
		c.Files = append(c.Files, fmt.Sprintf("%03d/%s", i, strings.Repeat("long/", 100)))
	}
	item := c.Capture(Agent, "p", true)
	message, _, _ := strings.Cut(item.Text, "\n\nFiles: ")
	if len(message) > maxMessage+len(" …") || !strings.HasSuffix(message, "ü …") {
		t.Errorf("%d bytes of a message, …%q", len(message), message[len(message)-10:])
	}
	if len(item.Metadata) >= 8<<10 || !bytes.Contains(item.Metadata, []byte("000/long")) {
		t.Errorf("%d bytes of metadata", len(item.Metadata))
	}
}
