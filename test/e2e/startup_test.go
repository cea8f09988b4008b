package e2e

import (
	"bytes"
	"cmp"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/memory"
)

// words splits a command line that quotes nothing.
func hinted(t *testing.T, stderr string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(stderr, "memnode --")
	if !ok {
		t.Fatalf("no command is proposed:\n%s", stderr)
	}
	line, _, _ := strings.Cut("--"+rest, "\n")
	return strings.Fields(line)
}

func TestTakenPortsNameACommandThatWorks(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--http-addr", "--nats-addr"} {
		t.Run(flag, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			dir := t.TempDir()
			d, e := launch{args: []string{flag, l.Addr().String()}}.attempt(t, dir)
			if d != nil {
				t.Fatalf("memnode started on a taken port: %s", d.stdout)
			}
			plainEnd(t, e, 6, l.Addr().String(), "is taken", "--data-dir "+dir)
			// What is proposed works when it is pasted.
			again := start(t, dir, hinted(t, e.err)...)
			again.capture("default", "it listens")
		})
	}
}

func TestDataDirectoryInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir)
	first.capture("default", "mine")
	d, e := launch{}.attempt(t, dir)
	if d != nil {
		t.Fatal("two nodes have one directory")
	}
	plainEnd(t, e, 5, "in use")
	if got := first.find("default", "mine"); len(got) != 1 {
		t.Errorf("the first node was disturbed: %q", got)
	}
	// The offline verbs keep away too.
	for _, args := range [][]string{{"doctor"}, {"log", "verify"}, {"backup", "--keys", filepath.Join(t.TempDir(), "k")}} {
		if e := memctl(t, "", nil, append(args, "--data-dir", dir)...); e.code != 5 || !strings.Contains(e.err+e.out, "in use") {
			t.Errorf("memctl %v on a directory in use: %d %s%s", args, e.code, e.out, e.err)
		}
	}
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, e := launch{}.attempt(t, filepath.Join(file, "below"))
	if d != nil {
		t.Fatal("memnode started below a file")
	}
	plainEnd(t, e, 2, file)
}

func TestReadOnlyFilesystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, dir).term()
	readOnly(t, dir)
	d, e := launch{}.attempt(t, dir)
	if d != nil {
		t.Fatal("memnode started on a read-only filesystem")
	}
	plainEnd(t, e, 2, dir)
}

func TestListeningOffLoopbackWithoutAuthIsRefused(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--http-addr", "--nats-addr"} {
		d, e := launch{args: []string{flag, "0.0.0.0:0"}}.attempt(t, t.TempDir())
		if d != nil {
			t.Fatal("memnode listens to everybody without auth")
		}
		plainEnd(t, e, 2, "--auth token", "try: ", "--insecure-listen")
		d, e = launch{args: []string{flag, "0.0.0.0:0", "--auth", "token"}}.attempt(t, t.TempDir())
		if d != nil {
			t.Fatal("memnode takes a token in clear from everybody")
		}
		plainEnd(t, e, 2, "would cross the network in clear", "--auth token --insecure-listen")
	}
}

// edit changes a file of a stopped node.
func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	after := change(bytes.Clone(b))
	if bytes.Equal(b, after) {
		t.Fatalf("the fault did not bite: %s is as before", path)
	}
	if err := os.WriteFile(path, after, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryOfANewerVersionOrWithoutItsKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := start(t, dir)
	kept := d.capture("default", "kept for later")
	d.term()
	remove := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, n := range names {
				if err := os.RemoveAll(filepath.Join(dir, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		fault func(t *testing.T, dir string)
		part  string
	}{
		"node.json newer": {func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "node.json"), func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"format": 1`), []byte(`"format": 99`), 1)
			})
		}, "newer"},
		"keyring newer": {func(t *testing.T, dir string) {
			for _, n := range []string{"keyring.v1", "keyring.v1.copy"} {
				edit(t, filepath.Join(dir, "keys", n), newerKeyring)
			}
		}, "newer"},
		"node.json lost": {remove("node.json", "node.json.copy"), "node.json"},
		"node.json empty": {func(t *testing.T, dir string) {
			for _, n := range []string{"node.json", "node.json.copy"} {
				edit(t, filepath.Join(dir, n), func([]byte) []byte { return nil })
			}
		}, "node.json"},
		"master key lost":            {remove("keys/master.key", "keys/master.key.copy"), "master key"},
		"keyring lost":               {remove("keys/keyring.v1", "keys/keyring.v1.copy"), "key"},
		"all keys lost":              {remove("keys"), "key"},
		"keys and state lost":        {remove("keys", "shards"), "key"},
		"another node's master key":  {otherKeys("master.key", "master.key.copy"), "key"},
		"another node's whole keys/": {otherKeys(keyFiles...), "key"},
		"whole keys/, without shards": {func(t *testing.T, dir string) {
			remove("shards")(t, dir)
			otherKeys(keyFiles...)(t, dir)
		}, "key"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyDir(t, dir)
			before := tree(t, filepath.Join(dir, "nats"))
			tc.fault(t, dir)
			d, e := launch{}.attempt(t, dir)
			if d != nil {
				t.Fatalf("memnode started; it finds %q", d.find("default", "kept"))
			}
			plainEnd(t, e, 7, tc.part)
			if after := tree(t, filepath.Join(dir, "nats")); after != before {
				t.Error("the log was changed")
			}
		})
	}
	// One copy of each key file is enough.
	for _, n := range keyFiles {
		dir := copyDir(t, dir)
		remove(filepath.Join("keys", n))(t, dir)
		d := start(t, dir)
		if all := d.everything("default"); len(all) != 1 || all[0].RecordID != kept.RecordID {
			t.Errorf("without %s: %+v", n, all)
		}
		d.term()
		if _, err := os.Stat(filepath.Join(dir, "keys", n)); err != nil {
			t.Errorf("%s was not made again: %v", n, err)
		}
	}
}

// keyFiles are all files of a keyring but the storage keys.
var keyFiles = []string{"master.key", "master.key.copy", "node.secret", "node.secret.copy", "keyring.v1", "keyring.v1.copy"}

// otherKeys puts files of another node's keyring in the place of this one's.
func otherKeys(names ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		other := t.TempDir()
		start(t, other).term()
		for _, n := range names {
			b, err := os.ReadFile(filepath.Join(other, "keys", n))
			if err != nil {
				t.Fatal(err)
			}
			edit(t, filepath.Join(dir, "keys", n), func([]byte) []byte { return b })
		}
	}
}

func TestNamespacesAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := start(t, dir, "--namespace", "team-a", "--namespace", "team-b")
	names := func(d *daemon) string {
		list, err := d.client.Namespaces(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, n := range list.Namespaces {
			out = append(out, n.Name)
		}
		return strings.Join(out, " ")
	}
	if got := names(d); got != "team-a team-b" {
		t.Errorf("namespaces %q", got)
	}
	d.capture("team-a", "stays")
	d.term()
	d = start(t, dir, "--namespace", "team-b", "--namespace", "team-c")
	if got := names(d); got != "team-a team-b team-c" {
		t.Errorf("after a restart: %q", got)
	}
	if got := d.find("team-a", "stays"); len(got) != 1 {
		t.Errorf("found %q", got)
	}
	d.term()
	bad, e := launch{args: []string{"--namespace", "Team A"}}.attempt(t, t.TempDir())
	if bad != nil {
		t.Fatal("an invalid namespace was made")
	}
	plainEnd(t, e, 2, "Team A")
}

// TestDryRunsMakeNothing: what a node says it would do, it does when it is asked to, and
// what it would refuse it refuses; and nothing is written until then.
func TestDryRunsMakeNothing(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	ctx := t.Context()
	if _, err := d.client.CreateNamespace(ctx, memory.CreateNamespace{Name: "there"}); err != nil {
		t.Fatal(err)
	}
	before := d.shard()
	half, much := "0.5", "2"
	for _, c := range []struct {
		create memory.CreateNamespace
		change string // or change this namespace
		patch  map[string]*string
		want   memory.Code
	}{
		{create: memory.CreateNamespace{Name: "new", Settings: map[string]string{"search.min_score": half}}},
		{create: memory.CreateNamespace{Name: "new", Settings: map[string]string{"search.min_score": much}}, want: memory.CodeInvalid},
		{create: memory.CreateNamespace{Name: "New"}, want: memory.CodeInvalid},
		{create: memory.CreateNamespace{Name: "there"}, want: memory.CodeConflict},
		{change: "there", patch: map[string]*string{"search.min_score": &half}},
		{change: "there", patch: map[string]*string{"search.min_score": nil}},
		{change: "there", patch: map[string]*string{"search.min_score": &much}, want: memory.CodeInvalid},
		{change: "there", patch: map[string]*string{"embedder.model": nil}, want: memory.CodeInvalid},
		{change: "new", patch: map[string]*string{"search.min_score": &half}, want: memory.CodeNotFound},
	} {
		var ns memory.Namespace
		var err error
		if c.change != "" {
			ns, err = d.client.PatchNamespace(ctx, c.change, memory.PatchNamespace{Settings: c.patch, DryRun: true})
		} else {
			c.create.DryRun = true
			ns, err = d.client.CreateNamespace(ctx, c.create)
		}
		if memory.CodeOf(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
		if name := cmp.Or(c.change, c.create.Name); err == nil && (ns.Name != name || ns.Embedder.Provider != "builtin") {
			t.Errorf("%+v: answered %+v", c, ns)
		}
	}
	if now := d.shard(); now.Position != before.Position || now.StateHash != before.StateHash {
		t.Errorf("at %s, before at %s", now.Position, before.Position)
	}
}

func TestRestartReachesReadinessAndKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := start(t, dir)
	for range 3 {
		d.capture("default", "the deploy runs on Tuesdays")
	}
	before := d.shard()
	hits := d.find("default", "deploy on tuesday")
	d.term()
	if !strings.Contains(d.stderr.String(), "stopped") {
		t.Errorf("the log does not say that it stopped:\n%s", d.stderr)
	}
	d = start(t, dir)
	if status, body := d.call("GET", "/readyz?verbose", ""); status != 200 || !strings.Contains(body, `"ok"`) {
		t.Errorf("readyz: %d %s", status, body)
	}
	if after := d.shard(); after.StateHash != before.StateHash || after.Records != before.Records {
		t.Errorf("state %s, before %s", after.StateHash, before.StateHash)
	}
	if got := d.find("default", "deploy on tuesday"); len(got) != len(hits) {
		t.Errorf("found %q, before %q", got, hits)
	}
	var report memory.DoctorReport
	mustJSON(t, d.must("doctor", "--json"), &report)
	if !report.OK {
		t.Errorf("doctor: %+v", report)
	}
}
