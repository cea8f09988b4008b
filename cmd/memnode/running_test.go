package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mneme/internal/node"
	"mneme/memory"
)

var rewrite = flag.Bool("rewrite", false, "write docs/operate/settings.md anew")

// settingsTable lists the settings as their definitions have them.
func settingsTable(opts []option) string {
	var b strings.Builder
	b.WriteString("| setting | type | default | unit | variable | set by | reloads | |\n|---|---|---|---|---|---|---|---|\n")
	for _, o := range opts {
		kind := map[kind]string{text: "text", list: "list", boolean: "boolean", number: "number", share: "share", duration: "duration"}[o.kind]
		if o.to > 0 {
			kind = fmt.Sprintf("number from %d to %d", o.from, o.to)
		}
		if o.choices != nil {
			kind = "one of " + strings.Join(o.choices, ", ")
		}
		def := fmt.Sprint(o.def)
		if many, ok := o.def.([]string); ok {
			def = strings.Join(many, ",")
		}
		if def = "`" + def + "`"; def == "``" {
			def = "–"
		}
		unit := o.unit
		if o.kind == duration {
			unit = "`ms`, `s`, `m`, `h`"
		}
		var by []string
		for _, l := range []layer{fromFlag, fromEnv, fromFile} {
			if o.settable(l) {
				by = append(by, map[layer]string{fromFlag: "flag", fromEnv: "variable", fromFile: "file"}[l])
			}
		}
		reloads := "no"
		if o.reloads {
			reloads = "yes"
		}
		if unit == "" {
			unit = "–"
		}
		usage := strings.ReplaceAll(strings.ReplaceAll(o.usage, "`", ""), "|", "\\|")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` | %s | %s | %s |\n", o.name, kind, def, unit, o.variable(), strings.Join(by, ", "), reloads, usage)
	}
	return b.String()
}

// TestSettingsAreDocumented: docs/operate/settings.md is written from the definitions, and
// docs/configuration.md or docs/cluster.md says more of each.
func TestSettingsAreDocumented(t *testing.T) {
	const begin, end = "<!-- generated: begin -->\n", "<!-- generated: end -->"
	docs := filepath.Join("..", "..", "docs")
	path := filepath.Join(docs, "operate", "settings.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	have, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no %q … %q", path, begin, end)
	}
	if want := settingsTable(options()); have != want {
		if !*rewrite {
			t.Fatalf("docs/operate/settings.md is not what the definitions say; go test ./cmd/memnode -run '^%s$' -rewrite writes it", t.Name())
		}
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	prose := ""
	for _, name := range []string{"configuration.md", "cluster.md"} {
		text, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		prose += string(text)
	}
	for _, o := range options() {
		if !strings.Contains(prose, "`"+o.name+"`") {
			t.Errorf("neither docs/configuration.md nor docs/cluster.md says what `%s` does", o.name)
		}
	}
}

// untilReady has a node start with what is given, does something while it runs, and stops it.
func untilReady(t *testing.T, w *world, n *fakeNode, during func(), args ...string) {
	t.Helper()
	w.system.open = func(_ context.Context, cfg node.Config) (instance, error) {
		w.cfg = cfg
		return n, nil
	}
	done := make(chan int, 1)
	go func() { done <- w.run(args...) }()
	for !strings.Contains(w.out.String(), "memnode ready") {
		select {
		case <-w.out.writes:
		case code := <-done:
			t.Fatalf("it ended with %d: %s", code, w.err)
		}
	}
	during()
	w.signals <- syscall.SIGTERM
	if code := <-done; code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}
}

func TestHangupReadsAgainAndDoesNotStop(t *testing.T) {
	n, reloaded := newFake(), make(chan bool, 1)
	n.reload = func() { reloaded <- true }
	w := newWorld(t, nil)
	untilReady(t, w, n, func() {
		for range 2 {
			w.hangups <- syscall.SIGHUP
			<-reloaded
		}
	})
}

func TestRereadTakesWhatMayChangeAndTellsOfTheRest(t *testing.T) {
	w := newWorld(t, nil)
	file := w.file(t, "m.yaml", "log-level: info\nslow-search: 1s\nshards: 2\nnats-url: nats://me:sesame@log:1\nnats-monitor: [http://log:8222]\n")
	untilReady(t, w, newFake(), func() {
		w.cfg.Logger.Debug("before")
		write := func(content string) (node.Live, memory.ReloadReport, error) {
			w.file(t, "m.yaml", content)
			return w.cfg.Process.Reread()
		}
		if _, r, err := w.cfg.Process.Reread(); err != nil || len(r.Settings) != 0 || r.File != file {
			t.Errorf("nothing has changed: %+v, %v", r, err)
		}
		const next = "log-level: debug\nmax-searches: 4\nmax-bodies: 16\nslow-search: 2s\nslow-search-text: true\nallowed-host: [a.example]\nshards: 3\nnats-url: nats://me:marmalade@log:1\nnats-monitor: [http://log:8222]\n"
		live, r, err := write(next)
		if err != nil || live.SlowSearch.Seconds() != 2 || live.Limits.Searches != 4 || live.Limits.Bodies != 16<<20 || live.Limits.Pages != node.DefaultPages || !live.SlowSearchText || !slices.Equal(live.AllowedHosts, []string{"a.example"}) {
			t.Errorf("%+v, %v", live, err)
		}
		applied := map[string]bool{}
		for _, s := range r.Settings {
			applied[s.Name] = s.Applied
			if words := fmt.Sprint(s.From, s.To); strings.Contains(words, "sesame") || strings.Contains(words, "marmalade") {
				t.Errorf("%s tells a password: %s", s.Name, words)
			}
		}
		for name, want := range map[string]bool{"log-level": true, "slow-search": true, "max-searches": true, "max-bodies": true, "slow-search-text": true, "allowed-host": true, "shards": false, "nats-url": false} {
			if got, there := applied[name]; !there || got != want {
				t.Errorf("%s: applied %v, told %v", name, got, there)
			}
		}
		w.cfg.Logger.Debug("after")
		if _, r, err = write(next); err != nil || len(r.Settings) != 2 {
			t.Errorf("what was not applied is told again, and nothing else: %+v, %v", r, err)
		}
		for _, bad := range []string{"log-level: loud\n", "no-such: 1\n", "allowed-origin: [nowhere]\n", "max-searches: 0\n", "max-bodies: 7\nmax-searches: 9\n", "max-queue: many\n", "vector-engine: exact\nauth: open\n"} {
			if _, _, err := write(bad); err == nil {
				t.Errorf("%q was taken", bad)
			}
		}
		if live, r, err := write(next); err != nil || live.Limits.Searches != 4 || len(r.Settings) != 2 {
			t.Errorf("after what could not be used: %+v, %+v, %v", live, r, err)
		}
		w.cfg.Logger.Debug("still")
	}, "--config", file)
	wantHas(t, "the log", w.err.String(), "msg=after", "msg=still")
	if strings.Contains(w.err.String(), "msg=before") {
		t.Error("debug was logged before it was asked for")
	}
}

func TestLastLinesHoldNoSecretsAndNoQueries(t *testing.T) {
	w := newWorld(t, nil)
	w.environ = []string{"MNEME_AUTH_TOKEN=canary-token-0123456789", "OPENAI_API_KEY=canary-key", "MASTER=canary-master"}
	var lines, settings string
	untilReady(t, w, newFake(), func() {
		log := w.cfg.Logger.With("shard", 0)
		log.Warn("slow search", node.QueryKey, "canary query")
		log.Error("it says canary-key and canary-token-0123456789", "err", fmt.Errorf("dial nats://u:canary-password@log: canary-master"))
		lines, settings = string(w.cfg.Process.Log()), fmt.Sprintf("%+v", w.cfg.Process.Settings())
	}, "--auth", "token", "--master-key", "env:MASTER", "--nats-url", "nats://u:canary-password@log:1", "--nats-monitor", "http://log:2")
	wantHas(t, "the last lines", lines, "slow search", "shard=0", "[left out]", "msg=starting")
	for _, text := range []string{lines, settings} {
		if i := strings.Index(text, "canary"); i >= 0 {
			t.Errorf("…%s", text[max(0, i-60):min(len(text), i+60)])
		}
	}
	wantHas(t, "the log itself", w.err.String(), "canary query")
}

func TestRecentIsBounded(t *testing.T) {
	r := &recent{}
	for i := range 3 * recentLines {
		_, _ = fmt.Fprintf(r, "line %d\n", i)
	}
	text := string(r.text())
	if n := strings.Count(text, "\n"); n != recentLines || !strings.HasSuffix(text, fmt.Sprintf("line %d\n", 3*recentLines-1)) {
		t.Errorf("%d lines", n)
	}
	_, _ = r.Write(make([]byte, recentBytes))
	if len(r.text()) != recentBytes {
		t.Errorf("%d bytes", len(r.text()))
	}
}

func TestConfigValidate(t *testing.T) {
	w := fails(t, nil)
	good := w.file(t, "good.yaml", "log-level: debug\n")
	if code := w.run("config", "validate", "--config", good); code != 0 {
		t.Fatalf("exit %d: %s", code, w.err)
	}
	wantHas(t, "standard output", w.out.String(), "the settings are good", "good.yaml")
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"unknown key":         {[]string{"--config", w.file(t, "a.yaml", "lgo-level: x\n")}, "did you mean log-level"},
		"wrong value":         {[]string{"--config", w.file(t, "b.yaml", "slow-search: soon\n")}, "b.yaml:1: slow-search"},
		"off loopback":        {[]string{"--http-addr", "192.0.2.7:0"}, "auth is off"},
		"cert without key":    {[]string{"--tls-cert", "x.crt"}, "--tls-cert is given without --tls-key"},
		"no certificate":      {[]string{"--tls-cert", "no.crt", "--tls-key", "no.key"}, "no.crt"},
		"half a cluster":      {[]string{"--node-id", "n1"}, "peer"},
		"master key":          {[]string{"--master-key", "vault:x"}, "the master key's source is none of"},
		"bad origin":          {[]string{"--allowed-origin", "nowhere"}, "nowhere"},
		"a limit of nothing":  {[]string{"--max-searches", "0"}, "\"0\" is not a whole number from 1 to 1048576"},
		"a body has no room":  {[]string{"--max-bodies", "7"}, "\"7\" is not a whole number from 8 to"},
		"shards":              {[]string{"--shards", "65"}, "65 shards"},
		"missing config file": {[]string{"--config", filepath.Join(w.dir, "missing.yaml")}, "missing.yaml"},
	} {
		w.err = &lockedBuffer{writes: make(chan struct{}, 100)}
		w.system.err = w.err
		if code := w.run(append([]string{"config", "validate"}, tc.args...)...); code != exitUsage {
			t.Errorf("%s: exit %d: %s", name, code, w.err)
		}
		wantHas(t, name, w.err.String(), tc.says)
	}
	if w.opens != 0 {
		t.Error("a node was opened")
	}
}
