package importer

import (
	"archive/zip"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mneme/memory"
)

var plainOptions = Options{Namespace: "n", Agent: "ann", Source: "s"}

func write(t *testing.T, name string, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLongLines: a line of 5 MB is refused where it cannot be a memory, with its
// place, and what stands around it goes in.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("a ", 5<<19)
	for name, c := range map[string]struct {
		text, where, says string
		items             int
	}{
		"a.jsonl": {"{\"text\":\"one\"}\n{\"text\":\"" + long + "\"}\n{\"text\":\"two\"}\n", "line 2", "longer than", 2},
		"a.md":    {"# One\nx\n# Two\n" + long + "\n# Three\ny\n", "a.md line 3", "larger than a memory may be", 2},
		"a.csv":   {"text\none\n\"" + long + "\"\ntwo\n", "line 3", "larger than", 2},
		"b.jsonl": {`{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hi"}}` + "\n" +
			`{"type":"user","uuid":"v","sessionId":"s","message":{"role":"user","content":"` + long + `"}}` + "\n", "line 2", "text has", 1},
	} {
		items, bad, _, end := all(t, write(t, name, c.text), plainOptions)
		if len(items) != c.items {
			t.Errorf("%s: %d items, want %d", name, len(items), c.items)
		}
		said := fmt.Sprint(end)
		if len(bad) > 0 {
			said = bad[0].Error()
		}
		if !strings.Contains(said, c.says) || !strings.Contains(said, c.where) {
			t.Errorf("%s: said %.200s", name, said)
		}
	}
}

// TestEncodings: a byte order mark, UTF-16 and line ends of Windows change nothing;
// what is no UTF-8 is named.
func TestEncodings(t *testing.T) {
	utf16 := func(s string) string {
		b := []byte{0xff, 0xfe}
		for _, r := range s { // of the basic plane
			b = append(b, byte(r), byte(r>>8))
		}
		return string(b)
	}
	line := "{\"text\":\"grün\"}\n"
	for name, text := range map[string]string{"plain": line, "mark": "\xef\xbb\xbf" + line, "windows": strings.ReplaceAll(line, "\n", "\r\n"), "utf16": utf16(line)} {
		items, bad, _, err := all(t, write(t, name+".jsonl", text), plainOptions)
		if err != nil || len(bad) > 0 || len(items) != 1 || items[0].Capture.Text != "grün" {
			t.Errorf("%s: %v %v %v", name, items, bad, err)
		}
	}
	for name, text := range map[string]string{"bom.md": "\xef\xbb\xbf# H\n\ngrün\n", "crlf.md": "# H\r\n\r\ngrün\r\n", "utf16.md": utf16("# H\n\ngrün\n")} {
		items, bad, _, err := all(t, write(t, name, text), plainOptions)
		if err != nil || len(bad) > 0 || len(items) != 1 || items[0].Capture.Text != "# H\n\ngrün" {
			t.Errorf("%s: %v %v %v", name, items, bad, err)
		}
	}
	_, bad, _, _ := all(t, write(t, "latin.jsonl", line+"{\"text\":\"gr\xfcn\"}\n"), plainOptions)
	if len(bad) != 1 || !strings.Contains(bad[0].Error(), "line 2: is not UTF-8: byte 12 of it is 0xfc") {
		t.Errorf("said %v", bad)
	}
}

// TestZipBomb: what unpacks to hundreds of times its size is refused while it is read.
func TestZipBomb(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bomb.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create("conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, `[{"mapping":{"a":{}},"id":"x"}`)
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for range 80 {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	_, bad, _, _ := all(t, path, plainOptions)
	if len(bad) != 1 || !strings.Contains(bad[0].Error(), "zip bomb") && !strings.Contains(bad[0].Error(), "larger than") {
		t.Errorf("said %v", bad)
	}
	u := &unpacking{ReadCloser: io.NopCloser(io.LimitReader(zeros{}, 1<<30)), of: []*unpacked{{packed: 1000}}}
	n, err := io.Copy(io.Discard, u)
	if err == nil || n > 2*bombSize || !strings.Contains(err.Error(), "zip bomb") {
		t.Errorf("read %d bytes: %v", n, err)
	}
}

// TestBombsOfManyFilesAndOfGzip: what a zip unpacks to counts for all of its files
// together, and what gzip unpacks to counts, too.
func TestBombsOfManyFilesAndOfGzip(t *testing.T) {
	padded := append([]byte(`[{"mapping":{"a":{}},"id":"x"}`), bytes.Repeat([]byte(" "), bombSize-100)...)
	padded = append(padded, ']')
	files := map[string][]byte{}
	for i := range 3 { // each alone is just small enough
		files[fmt.Sprintf("conversations-%03d.json", i)] = padded
	}
	_, bad, _, _ := all(t, zipOf(t, files), plainOptions)
	if !slices.ContainsFunc(bad, func(e *ItemError) bool { return strings.Contains(e.Error(), "zip bomb") }) {
		t.Errorf("of many files it said %v", bad)
	}
	lines := append([]byte(`{"id":"1","memory":"a","user_id":"u"}`+"\n"), bytes.Repeat([]byte("\n"), 2*bombSize)...)
	_, bad, _, err := all(t, write(t, "memories.jsonl.gz", string(gzipped(t, lines))), plainOptions)
	if said := fmt.Sprint(bad, err); !strings.Contains(said, "zip bomb") {
		t.Errorf("of gzip it said %s", said)
	}
}

// TestLinkedDatabaseIsNotFollowed: a link in a folder does not lead to a database elsewhere.
func TestLinkedDatabaseIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(memorixDatabase(t, false), filepath.Join(dir, "memorix.db")); err != nil {
		t.Fatal(err) // it can be made wherever these tests run
	}
	src, err := OpenPath("memorix", dir, plainOptions)
	if err == nil {
		_ = src.Close()
	}
	if memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), "not followed") {
		t.Errorf("%v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestPathsOutOfArchives: names that lead out are told, and not read.
func TestPathsOutOfArchives(t *testing.T) {
	path := zipOf(t, map[string][]byte{"conversations.json": sample(t, "chatgpt/conversations.json"), "../../conversations.json": []byte("[]"),
		"/etc/conversations.json": []byte("[]"), `..\conversations.json`: []byte("[]")})
	items, bad, _, err := all(t, path, plainOptions)
	if err != nil || len(items) != 3 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	out := 0
	for _, b := range bad {
		if strings.Contains(b.Error(), "leads out of the archive") {
			out++
		}
	}
	if out != 3 {
		t.Errorf("%d names told: %v", out, bad)
	}
}

// TestLinksAreNotFollowed: a note that is a link to a file elsewhere is left out.
func TestLinksAreNotFollowed(t *testing.T) {
	secret := write(t, "secret.md", "# Secret\nx\n")
	dir := filepath.Dir(write(t, "note.md", "# Note\nx\n"))
	if err := os.Symlink(secret, filepath.Join(dir, "link.md")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	items, _, out, err := all(t, dir, plainOptions)
	if err != nil || len(items) != 1 || len(out) != 1 || !strings.Contains(out[0].Error(), "symbolic link") {
		t.Errorf("%d items, %v, %v", len(items), out, err)
	}
}

// TestCutOffFiles: what is damaged in the middle gives what stood before, and one
// plain error.
func TestCutOffFiles(t *testing.T) {
	for _, name := range []string{"chatgpt/conversations.json", "claude/conversations.json", "mem0/get_all.json", "memorix/observations.json"} {
		b := sample(t, name)
		for _, cut := range []int{1, len(b) / 3, len(b) - 3} {
			src, err := Open(formatOf(name), bytes.NewReader(b[:cut]), plainOptions)
			if err != nil {
				t.Fatal(err)
			}
			_, _, _, end := drained(src)
			if memory.CodeOf(end) != memory.CodeInvalid || !strings.Contains(end.Error(), "not a") {
				t.Errorf("%s cut to %d bytes: %v", name, cut, end)
			}
			if _, err := src.Next(); !errors.Is(err, end) {
				t.Errorf("%s: goes on with %v behind its end", name, err)
			}
		}
	}
	z := zipOf(t, map[string][]byte{"conversations.json": sample(t, "chatgpt/conversations.json")})
	b, err := os.ReadFile(z)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := all(t, write(t, "cut.zip", string(b[:len(b)/2])), plainOptions); err == nil || !strings.Contains(err.Error(), "not a whole zip") {
		t.Errorf("a cut zip: %v", err)
	}
}

func formatOf(sample string) string { return strings.Split(sample, "/")[0] }

// memorixDatabase makes memorix.db as Memorix makes it, with the rows of the samples.
// With open it is left in use, its newest rows in the write-ahead log.
func memorixDatabase(t *testing.T, open bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memorix.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, q := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0",
		`CREATE TABLE observations (id INTEGER PRIMARY KEY, entityName TEXT NOT NULL, type TEXT NOT NULL, title TEXT NOT NULL, narrative TEXT NOT NULL DEFAULT '',
			facts TEXT NOT NULL DEFAULT '[]', filesModified TEXT NOT NULL DEFAULT '[]', concepts TEXT NOT NULL DEFAULT '[]', tokens INTEGER NOT NULL DEFAULT 0,
			createdAt TEXT NOT NULL, updatedAt TEXT, projectId TEXT NOT NULL, hasCausalLanguage INTEGER DEFAULT 0, topicKey TEXT, revisionCount INTEGER DEFAULT 1,
			sessionId TEXT, status TEXT NOT NULL DEFAULT 'active', progress TEXT, source TEXT DEFAULT 'agent', commitHash TEXT, relatedCommits TEXT,
			relatedEntities TEXT, sourceDetail TEXT, valueCategory TEXT, admissionState TEXT, admissionReason TEXT, visibility TEXT, sharedWithAgentIds TEXT)`,
		`CREATE TABLE mini_skills (id INTEGER PRIMARY KEY, sourceObservationIds TEXT NOT NULL DEFAULT '[]', sourceEntity TEXT NOT NULL DEFAULT 'unknown', title TEXT NOT NULL,
			instruction TEXT NOT NULL DEFAULT '', trigger_desc TEXT NOT NULL DEFAULT '', facts TEXT NOT NULL DEFAULT '[]', projectId TEXT NOT NULL, createdAt TEXT NOT NULL,
			usedCount INTEGER NOT NULL DEFAULT 0, tags TEXT NOT NULL DEFAULT '[]')`,
		`CREATE TABLE sessions (id TEXT PRIMARY KEY, projectId TEXT NOT NULL, startedAt TEXT NOT NULL, endedAt TEXT, status TEXT NOT NULL DEFAULT 'active', summary TEXT, agent TEXT)`,
		`CREATE TABLE graph_entities (name TEXT PRIMARY KEY, entityType TEXT NOT NULL DEFAULT '', observations TEXT NOT NULL DEFAULT '[]')`,
		`CREATE TABLE graph_relations (id INTEGER PRIMARY KEY AUTOINCREMENT, from_entity TEXT NOT NULL, to_entity TEXT NOT NULL, relationType TEXT NOT NULL DEFAULT '',
			UNIQUE(from_entity, to_entity, relationType))`,
		`INSERT INTO observations (id, entityName, type, title, narrative, facts, concepts, createdAt, projectId, sessionId, valueCategory)
			VALUES (1, 'auth-module', 'gotcha', 'Tokens expire at midnight UTC', 'The issuer rounds.', '["issuer: example"]', '["jwt"]', '2026-02-01T08:00:00.000Z', 'ann/shop', 'sess-1', 'core')`,
		`INSERT INTO observations (id, entityName, type, title, facts, createdAt, projectId) VALUES (2, 'x', 'discovery', 'Not a list', '{', '2026-02-01T08:00:00.000Z', 'ann/shop')`,
		`INSERT INTO mini_skills (id, title, instruction, trigger_desc, projectId, createdAt) VALUES (1, 'Check expiry', 'In UTC.', 'tokens', 'ann/shop', '2026-02-04')`,
		`INSERT INTO sessions (id, projectId, startedAt, summary, agent) VALUES ('sess-1', 'ann/shop', '2026-02-01T07:00:00.000Z', 'Logins.', 'cursor')`,
		`INSERT INTO graph_entities VALUES ('auth-module', 'module', '["a","b"]')`,
		`INSERT INTO graph_relations (from_entity, to_entity, relationType) VALUES ('auth-module', 'shop', 'part of')`,
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	if !open {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestMemorixDatabase(t *testing.T) {
	for _, open := range []bool{false, true} {
		path := memorixDatabase(t, open)
		items, bad, out, err := all(t, path, plainOptions)
		if err != nil || len(items) != 5 || len(bad) != 1 || len(out) != 0 {
			t.Fatalf("open %t: %d items, %v, %v, %v", open, len(items), bad, out, err)
		}
		if c := items[0].Capture; c.Text != "Tokens expire at midnight UTC\n\nThe issuer rounds.\n\n- issuer: example" || c.Kind != memory.KindError || *c.Importance != 1 {
			t.Errorf("%+v", c)
		}
		if e, r := items[3].Entity, items[4].Relation; e == nil || r == nil || len(e.Observations) != 2 || r.To != "shop" {
			t.Errorf("%+v, %+v", e, r)
		}
		if !strings.Contains(bad[0].Error(), "observations row 2: column facts holds no list") {
			t.Errorf("said %v", bad[0])
		}
		if got, _, _, err := all(t, filepath.Dir(path), plainOptions); err != nil || len(got) != len(items) {
			t.Errorf("its folder: %d items, %v", len(got), err)
		}
	}
}

// TestDatabaseThatComputesGigabytes: a few bytes of schema do not make values larger
// than any that Memorix keeps, and what is stored is read.
func TestDatabaseThatComputesGigabytes(t *testing.T) {
	const bomb = 64 << 20
	path := memorixDatabase(t, false)
	change := func(q string) {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec(q)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (items []Item, bad []*ItemError, made uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		items, bad, _, err := all(t, path, plainOptions)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return items, bad, after.TotalAlloc - before.TotalAlloc
	}
	change(fmt.Sprintf("ALTER TABLE observations ADD COLUMN detail TEXT AS (hex(zeroblob(%d)))", bomb/2))
	change(fmt.Sprintf("ALTER TABLE observations ADD COLUMN visibility2 TEXT AS (printf('%%.*c', %d, 'x'))", bomb))
	change(fmt.Sprintf("ALTER TABLE observations ADD COLUMN createdByAgentId TEXT AS (printf('%%.*c', %d, 'x'))", bomb))
	items, bad, made := read()
	if len(items) != 5 || len(bad) != 1 || made > bomb {
		t.Errorf("%d items, %v, %d bytes made", len(items), bad, made)
	}
	change(fmt.Sprintf("UPDATE observations SET narrative = hex(zeroblob(%d)) WHERE id = 2", bomb/2))
	items, bad, made = read()
	if len(items) != 5 || len(bad) != 1 || !strings.Contains(bad[0].Error(), "too big") || made > bomb {
		t.Errorf("%d items, %v, %d bytes made", len(items), bad, made)
	}
}

// TestDamagedDatabase: whatever bytes of a database are damaged, there are items, or
// an error that says so, and no crash.
func TestDamagedDatabase(t *testing.T) {
	good, err := os.ReadFile(memorixDatabase(t, false))
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for i := range 60 {
		b := bytes.Clone(good)
		if i == 0 {
			b = b[:len(b)/2]
		}
		for range 1 + rng.IntN(200) {
			b[16+rng.IntN(len(b)-16)] = byte(rng.Uint32())
		}
		items, bad, _, err := all(t, write(t, "memorix.db", string(b)), plainOptions)
		for _, it := range items {
			if !utf8.ValidString(it.Capture.Text) {
				t.Errorf("%s is not UTF-8", it.Where)
			}
		}
		if err != nil || len(bad) > 1 {
			refused++
		}
	}
	if refused == 0 {
		t.Error("nothing was ever refused")
	}
	_, _, _, err = all(t, write(t, "other.db", sqliteMagic+strings.Repeat("x", 4096)), plainOptions)
	if memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("%v", err)
	}
}

func TestAnotherDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("CREATE TABLE t (x)")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := all(t, path, plainOptions); err == nil || !strings.Contains(err.Error(), "not one of Memorix") {
		t.Errorf("%v", err)
	}
}

// FuzzSources: whatever bytes a source gets, it ends, gives only what a node takes,
// and gives the same again.
func FuzzSources(f *testing.F) {
	for i, format := range Formats() {
		for _, s := range []string{"chatgpt/conversations.json", "claude/conversations.json", "mem0/get_all.json", "memorix/observations.json", "csv/notes.csv",
			"codex/rollout-2025-06-01-old.jsonl", "mcp-memory/memory.jsonl", "markdown/CLAUDE.md"} {
			if b, err := os.ReadFile(filepath.Join("testdata", s)); err == nil && (strings.HasPrefix(s, format) || i == 0) {
				f.Add(i, b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, i int, b []byte) {
		names := Formats()
		format := names[((i%len(names))+len(names))%len(names)]
		read := func() (items []Item, told int) {
			var src Source
			var err error
			if info, _ := lookUp(format, plainOptions); info.stream == nil {
				path := filepath.Join(t.TempDir(), "a.md")
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				src, err = OpenPath(format, path, plainOptions)
			} else {
				src, err = Open(format, bytes.NewReader(b), plainOptions)
			}
			if err != nil {
				return nil, 0
			}
			defer func() { _ = src.Close() }()
			items, bad, out, _ := drained(src)
			return items, len(bad) + len(out)
		}
		items, told := read()
		again, toldAgain := read()
		if len(items) != len(again) || told != toldAgain {
			t.Fatalf("%s: %d and %d, then %d and %d", format, len(items), told, len(again), toldAgain)
		}
		for k, it := range items {
			if it.Entity != nil || it.Relation != nil {
				continue
			}
			if err := it.Capture.Validate(); err != nil || it.Capture.ID == "" || it.Capture.ID != again[k].Capture.ID {
				t.Fatalf("%s: item %s: %v", format, it.Where, err)
			}
		}
	})
}

// FuzzSections: no line of a text is lost or repeated by dividing it, but those of
// headings without text.
func FuzzSections(f *testing.F) {
	f.Add("# A\n\ntext\n\n```\n# b\n```\n- x\n  - y\n\nB\n---\nc\n")
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		lines := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
		for _, s := range splitSections([]byte(text), 1) {
			if s.first <= last || s.last < s.first || s.last > len(lines) {
				t.Fatalf("section %d-%d behind line %d of %d", s.first, s.last, last, len(lines))
			}
			last = s.last
			if !strings.ContainsRune(text, '\r') && s.text != strings.Join(lines[s.first-1:s.last], "\n") {
				t.Fatalf("lines %d-%d are not what stands there:\n%q", s.first, s.last, s.text)
			}
		}
	})
}

// TestExportedFiles: what an export writes as Markdown is read as it was.
func TestExportedFiles(t *testing.T) {
	for _, text := range []string{"plain", "\n\nblank lines around\n\n", "---\nmneme: memory\n---\n", "windows\r\n", "carriage return\r", "tab\tand  spaces ", "# Heading\n```\nopen"} {
		imp := 0.1
		exp := memory.ExportLine{Capture: memory.Capture{ID: "007", Agent: "ann", Text: text, Kind: memory.KindFact, Role: "user", URI: "mem://n/a/b", Tags: []string{"2024-01-01", "yes", "a, b"},
			Conversation: "c: d", Subject: "null", Scope: memory.ScopeTeam, Importance: &imp, Metadata: []byte(`{"big":12345678901234567890,"s":"'\""}`)},
			RecordID: "01M8BAFJYK855VYK7JHJYP575N", Version: 3}
		b, err := FormatExported(exp)
		if err != nil {
			t.Fatal(err)
		}
		items, bad, _, err := all(t, write(t, "x.md", string(b)), plainOptions)
		if err != nil || len(bad) > 0 || len(items) != 1 {
			t.Fatalf("%q: %v %v", text, bad, err)
		}
		got := items[0].Capture
		want := exp.Capture
		want.URI = "a/b"
		if fmt.Sprintf("%q %s", got.Text, got.Metadata) != fmt.Sprintf("%q %s", want.Text, want.Metadata) {
			t.Errorf("got %q %s", got.Text, got.Metadata)
		}
		got.Text, want.Text, got.Metadata, want.Metadata = "", "", nil, nil
		got.Importance, want.Importance = nil, nil
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || *items[0].Capture.Importance != imp {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// folderWith is a folder with files.
func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A file that is no text was told once for each of what looked like its sections.
func TestAFileThatIsNoTextIsToldOnce(t *testing.T) {
	binary := []byte("\x7fELF\x00\x01")
	for i := range 4 << 10 {
		binary = append(binary, byte(i*i>>3), '\n', '\n', '#', ' ', byte(i))
	}
	s, err := OpenPath("markdown", folderWith(t, map[string]string{"a.md": "# A\na\n", "b.md": string(binary)}), Options{Namespace: "ns", Agent: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	items, bad, err := readAll(t, s)
	if err != nil || len(items) != 1 || len(bad) != 1 || !strings.Contains(bad[0].Error(), "b.md: is no text") {
		t.Errorf("%d items, %d bad, the first %.200v, %v", len(items), len(bad), bad, err)
	}
}

// What lies beside an export and is one itself was said to hold no memories.
func TestWhatLiesBesideAnExportIsNamed(t *testing.T) {
	dir := folderWith(t, map[string]string{"conversations.json": `[{"mapping":{}}]`, "mem0.json": `{"results":[{"id":"1","memory":"x"}]}`, "user.json": `{"id":"1"}`, "empty.jsonl": ""})
	s, err := OpenPath("chatgpt", dir, Options{Namespace: "ns", Agent: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for {
		_, err := s.Next()
		var skip *Skip
		if errors.As(err, &skip) {
			told[skip.Where] = skip.Why
		}
		if err == io.EOF {
			break
		}
	}
	if err := s.Close(); err != nil || told["mem0.json"] != "of another format; import it by its name" || told["user.json"] != "a file of another kind" || told["empty.jsonl"] != "a file of another kind" {
		t.Errorf("%q, %v", told, err)
	}
}
