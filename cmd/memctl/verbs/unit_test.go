package verbs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("X", 2*3600)
	now := time.Date(2024, 5, 10, 9, 30, 15, 0, zone)
	for in, want := range map[string]string{
		"now":                         "2024-05-10T09:30:15+02:00",
		"today":                       "2024-05-10T00:00:00+02:00",
		"Yesterday":                   "2024-05-09T00:00:00+02:00",
		"2h":                          "2024-05-10T07:30:15+02:00",
		"1h30m":                       "2024-05-10T08:00:15+02:00",
		"90s":                         "2024-05-10T09:28:45+02:00",
		"7d":                          "2024-05-03T09:30:15+02:00",
		"2w":                          "2024-04-26T09:30:15+02:00",
		"2h ago":                      "2024-05-10T07:30:15+02:00",
		"7d ago":                      "2024-05-03T09:30:15+02:00",
		"0d":                          "2024-05-10T09:30:15+02:00",
		"2024-05-01":                  "2024-05-01T00:00:00+02:00",
		"2024-05":                     "2024-05-01T00:00:00+02:00",
		" 2024-05-01 13:14 ":          "2024-05-01T13:14:00+02:00",
		"2024-05-01T13:14:15":         "2024-05-01T13:14:15+02:00",
		"2024-05-01T13:14:15Z":        "2024-05-01T13:14:15Z",
		"2024-05-01T13:14:15.5-01:00": "2024-05-01T13:14:15-01:00",
	} {
		got, err := parseTime(in, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("parseTime(%q) = %s, %v, want %s", in, got.Format(time.RFC3339), err, want)
		}
	}
	for _, in := range []string{"", "d", "ago", "tomorrow", "-2h", "+2h", "-7d", "7", "1.5d", "2024-13-01", "2024-05-32", "9999999d", "h"} {
		if got, err := parseTime(in, now); memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("parseTime(%q) = %v, %v, want an error", in, got, err)
		}
	}
}

func TestADayAgoIsTheSameTimeOfDayWhenClocksChange(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones here")
	}
	got, err := parseTime("1d", time.Date(2024, 3, 31, 12, 0, 0, 0, zone))
	if err != nil || got.Hour() != 12 || got.Day() != 30 {
		t.Fatalf("got %v, %v", got, err)
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"2h", "7d", "yesterday", "2024-05-01", "ago", "99999999999999999999d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := parseTime(s, fakeNow); err == nil && got.IsZero() && !strings.HasPrefix(s, "0001") {
			t.Errorf("%q is the zero time", s)
		}
	})
}

func TestNearest(t *testing.T) {
	verbs := []string{"search", "capture", "status", "log", "list"}
	for in, want := range map[string]string{"serach": "search", "searhc": "search", "captur": "capture", "stat": "status",
		"lst": "list", "lgo": "log", "xyz": "", "": ""} {
		if got := nearest(in, verbs); got != want {
			t.Errorf("nearest(%q) = %q, want %q", in, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "acb", 1}, {"kitten", "sitting", 3}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestAge(t *testing.T) {
	a := newApp(t.Context(), plainSystem(io.Discard))
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 60 * time.Second: "1m", 25 * time.Hour: "1d",
		8 * 24 * time.Hour: "1w", 40 * 24 * time.Hour: "1mo", 800 * 24 * time.Hour: "2y", -3 * time.Hour: "in 3h"} {
		if got := a.age(fakeNow.Add(-d)); got != want {
			t.Errorf("age of %v = %q, want %q", d, got, want)
		}
	}
	if a.age(time.Time{}) != "-" || a.clock(time.Time{}) != "-" {
		t.Error("the zero time has an age")
	}
}

func TestCutKeepsWholeCharacters(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{{"short", 10, "short"}, {"exactly ten", 11, "exactly ten"}, {"one two three", 8, "one two…"}, {"部署在星期二", 7, "部署在…"},
		{"部署在星期二", 6, "部署…"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"}} {
		if got := cut(c.in, c.width); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestTextForTerminalsIsHarmless(t *testing.T) {
	in := "a\x1b]0;title\x07b\u202ec\u009bd\r\ne\u2066f\tg"
	if got := oneLine(in); got != "a]0;titlebcd ef g" {
		t.Errorf("oneLine: %q", got)
	}
	if got := safe(in); got != "a]0;titlebcd\nef\tg" {
		t.Errorf("safe: %q", got)
	}
}

// chunks returns its input in reads of random size, and errors when it is read
// again while a read is under way.
type chunks struct {
	rest []byte
	rng  *rand.Rand
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+c.rng.IntN(7))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func TestCtxReaderPassesEverythingOn(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	want := bytes.Repeat([]byte("0123456789"), 50)
	r := &ctxReader{ctx: t.Context(), r: &chunks{rest: want, rng: rng}}
	var got []byte
	for {
		p := make([]byte, 1+rng.IntN(9))
		n, err := r.Read(p)
		got = append(got, p[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("seed %d: got %d bytes %q", seed, len(got), got)
	}
}

func TestCtxReaderEndsWithTheContextAndLosesNothing(t *testing.T) {
	pr, pw := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	r := &ctxReader{ctx: ctx, r: pr}
	cancel()
	if _, err := r.Read(make([]byte, 8)); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	r.ctx = t.Context()
	go func() { _, _ = pw.Write([]byte("later")) }()
	p := make([]byte, 3)
	if _, err := io.ReadFull(r, p); err != nil || string(p) != "lat" {
		t.Fatalf("got %q, %v", p, err)
	}
	if n, err := r.Read(p); err != nil || string(p[:n]) != "er" {
		t.Fatalf("got %q, %v", p[:n], err)
	}
}

func TestReplaceFileLeavesTheOldFileWhenWritingFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	ok := func(s string) func(*os.File) error {
		return func(f *os.File) error { _, err := f.WriteString(s); return err }
	}
	if err := replaceFile(path, 0o600, ok("old")); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("bad")
	err := replaceFile(path, 0o600, func(f *os.File) error { _ = ok("half")(f); return bad })
	if !errors.Is(err, bad) {
		t.Fatalf("error %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Fatalf("file holds %q", b)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Fatalf("left behind: %v", entries)
	}
}

func TestEveryVerbHasHelpAndAnExample(t *testing.T) {
	root := rootCmd(newApp(t.Context(), plainSystem(io.Discard)))
	todo := root.Commands()
	for len(todo) > 0 {
		cmd := todo[0]
		todo = append(todo[1:], cmd.Commands()...)
		if cmd.Short == "" || cmd.Example == "" {
			t.Errorf("%s has no description or no example", cmd.CommandPath())
		}
	}
}

func TestBackslashUserNamesOfDomains(t *testing.T) {
	sys := plainSystem(io.Discard)
	sys.userName = func() string { return `CORP\Bob` }
	if got, err := newApp(t.Context(), sys).author(); err != nil || got != "bob" {
		t.Fatalf("author %q, %v", got, err)
	}
}

func TestOsSystemIsComplete(t *testing.T) {
	sys := osSystem(nil)
	if sys.isTerminal(&bytes.Buffer{}) || sys.version.Go == "" || sys.now().IsZero() {
		t.Fatalf("system %+v", sys)
	}
	_, _ = sys.userName(), sys.width()
	if err := sys.sleep(t.Context(), time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sys.sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Fatalf("sleep: %v", err)
	}
}

// TestPipedTablesWereCut at 120 columns, so that what grep looked for was not there.
func TestPipedTablesWereCut(t *testing.T) {
	long := strings.Repeat("long ", 60) + "end"
	print := func(terminal bool, env map[string]string) []string {
		var out bytes.Buffer
		a := newApp(t.Context(), system{out: &out, now: time.Now, getenv: func(name string) string { return env[name] },
			isTerminal: func(any) bool { return terminal }, width: func() int { return 80 }})
		a.table([]column{{name: "AGENT"}, {name: "MEMORY", flex: true}, {name: "ID"}}, [][]string{{"ann", "short", "1"}, {"bob", long, "2"}})
		if err := a.flush(); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	}
	for _, env := range []map[string]string{nil, {"COLUMNS": "80"}} {
		rows := print(false, env)
		if len(rows) != 3 || !strings.Contains(rows[2], long+"  2") || len(rows[1]) > 130 || strings.Index(rows[0], "ID") != strings.Index(rows[1], "1") {
			t.Errorf("%v: %q", env, rows)
		}
	}
	if rows := print(true, map[string]string{"NO_COLOR": "1"}); len(rows) != 3 || strings.Contains(rows[2], "end") || !strings.HasSuffix(rows[2], "…  2") {
		t.Errorf("on a terminal: %q", rows)
	}
}

// TestTailNamedTheTypeInFull of what is not about a memory; other verbs do not.
func TestTailNamedTheTypeInFull(t *testing.T) {
	for typ, want := range map[string]string{"io.mneme.memory.captured.v1": " captured ", "io.mneme.namespace.created.v1": " namespace.created "} {
		var out bytes.Buffer
		a := newApp(t.Context(), system{out: &out, now: time.Now, getenv: func(string) string { return "" }, isTerminal: func(any) bool { return false }})
		if err := printEvent(a, "team-a", memory.Event{Type: typ, ID: "e"}); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q, %v", out.String(), err)
		}
	}
}

// Of several nodes with one id the first one was looked at, and that was one that was
// refused: `cluster join n3` proposed to remove n3, which ran.
func TestJoinOfAnIDThatSeveralNodesHave(t *testing.T) {
	st := memory.ClusterStatus{Nodes: []memory.ClusterNode{{ID: "n1", Name: "n1-a", Address: "n1:1", Role: memory.RoleVoter, Reachable: true},
		{ID: "n3", Name: "n3-a", Address: "n3:1", Role: memory.RoleLearner},
		{ID: "n3", Name: "n3-b", Address: "n3:2", Role: memory.RoleVoter, Reachable: true},
		{ID: "n3", Name: "n3-c", Address: "n3:3", Role: memory.RoleVoter}}}
	err := joinable(nil, st, clusterJoin{Node: "n3"}, joinOptions{peerAddr: "n4:1", routeAddr: "n4:2"})
	if memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(err.Error(), "answers at n3:2") {
		t.Errorf("got %v", err)
	}
}
