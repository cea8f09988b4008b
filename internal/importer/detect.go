package importer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mneme/memory"
)

// headSize is how much of a file is looked at to find out what it is.
const headSize = 64 << 10

// Find says which format a file or folder has, and by what it is known. Its errors do not name the path, which
// the caller has.
func Find(path string) (format, why string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", "", memory.Errorf(memory.CodeInvalid, "%w", Unnamed(err, path))
	}
	if info.IsDir() {
		files, err := os.ReadDir(path)
		if err != nil {
			return "", "", memory.Errorf(memory.CodeInvalid, "%w", Unnamed(err, path))
		}
		if len(files) == 0 {
			return "", "", memory.Errorf(memory.CodeInvalid, "the folder is empty")
		}
		format, why = findFolder(path)
	} else {
		f, err := os.Open(path)
		if err != nil {
			return "", "", memory.Errorf(memory.CodeInvalid, "%w", Unnamed(err, path))
		}
		h := head(f)
		_ = f.Close()
		if format, why = sniff(h, filepath.Base(path)); format == zipped {
			if format, why, err = findZip(path); err != nil {
				return "", "", err
			}
		}
	}
	if format == "" {
		return "", "", unknown()
	}
	return format, why, nil
}

// FindStream says which format a stream has by its beginning, which stays in r.
func FindStream(r interface{ Peek(int) ([]byte, error) }) (format, why string, err error) {
	h, _ := r.Peek(headSize) // what is there, however little
	format, why = sniff(h, "")
	if format == "" || format == zipped || format == "markdown" {
		return "", "", unknownStream()
	}
	return format, why, nil
}

// unknownStream names the formats that need no path.
func unknownStream() error {
	var names []string
	for _, f := range formats {
		if f.stream != nil {
			names = append(names, f.name)
		}
	}
	return memory.Errorf(memory.CodeInvalid, "its format was not found out").
		WithHint("name it with --format, one of %s; notes and archives are named by their path", strings.Join(names, ", "))
}

// Unnamed is an error about a file without the name of that file, for who has named it.
func Unnamed(err error, path string) error {
	var at *fs.PathError
	if errors.As(err, &at) && at.Path == path {
		return at.Err
	}
	return err
}

func unknown() error {
	return memory.Errorf(memory.CodeInvalid, "its format was not found out").
		WithHint("name it with --format, one of %s; `memctl import --help` says what each is", strings.Join(Formats(), ", "))
}

// head reads the beginning of a file.
func head(r io.Reader) []byte {
	b := make([]byte, headSize)
	n, _ := io.ReadFull(r, b) // a short file is short
	return b[:n]
}

// zipped is what sniff answers for a zip, whose files say more.
const zipped = "zip"

// sniff finds a format by the beginning of a file and its name.
func sniff(h []byte, name string) (format, why string) {
	switch {
	case bytes.HasPrefix(h, []byte(sqliteMagic)):
		return "memorix", "it is a SQLite database"
	case bytes.HasPrefix(h, []byte(zipMagic)), bytes.HasPrefix(h, []byte("PK\x05\x06")):
		return zipped, ""
	case bytes.HasPrefix(h, []byte(gzipMagic)):
		z, err := gzip.NewReader(bytes.NewReader(h))
		if err != nil {
			return "", ""
		}
		inner := head(z)
		if format, why = sniff(inner, strings.TrimSuffix(name, ".gz")); format != "mem0" {
			return "", "" // the others are not read compressed
		}
		return format, why
	case isMarkdown(name):
		return "markdown", "its name ends in " + path.Ext(name)
	}
	h = utf8Head(h)
	trimmed := bytes.TrimLeft(h, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return "jsonl", "it is empty"
	case trimmed[0] == '[':
		return sniffArray(trimmed)
	case trimmed[0] == '{':
		format, why = sniffObject(trimmed)
		if format == "" && slices.Contains([]string{".jsonl", ".ndjson"}, strings.ToLower(path.Ext(name))) {
			return "jsonl", "its name ends in " + path.Ext(name)
		}
		return format, why
	}
	return sniffCSV(trimmed, name)
}

// utf8Head is the beginning of a file as decoded reads it.
func utf8Head(h []byte) []byte {
	out, _ := io.ReadAll(decodedBy(bytes.NewReader(h), headSize)) // what can be read of it
	return out
}

// shape is a format that is known by the keys of an object.
type shape struct {
	format string
	keys   []string // all of them are there
	why    string
}

// elementShapes are what elements of arrays look like.
var elementShapes = []shape{
	{"chatgpt", []string{"mapping"}, "its elements are conversations of ChatGPT, with a mapping"},
	{"claude", []string{"chat_messages"}, "its elements are conversations of Claude, with chat_messages"},
	{"memorix", []string{"entityName", "narrative"}, "its elements are observations of Memorix"},
	{"memorix", []string{"sourceObservationIds", "instruction"}, "its elements are skills of Memorix"},
	{"locomo", []string{"conversation", "sample_id"}, "its elements are conversations of LoCoMo"},
	{"mem0", []string{"id", "memory"}, "its elements are memories of mem0"},
}

// objectShapes are what documents that are one object look like.
var objectShapes = []shape{
	{"memorix", []string{"observations", "projectId"}, "it is an export of Memorix, with observations"},
	{"mem0", []string{"memories", "export_meta"}, "it is an export of OpenMemory"},
	{"mem0", []string{"memories", "apps"}, "it is an export of OpenMemory"},
	{"mem0", []string{"results"}, "it is an answer of mem0, with results"},
}

// lineShapes are what lines look like.
var lineShapes = []shape{
	{"codex", []string{"timestamp", "type", "payload"}, "its lines have type and payload, as those of Codex have"},
	{"codex", []string{"id", "timestamp", "instructions"}, "it begins with a session of Codex"},
	{"claude-code", []string{"sessionId", "type"}, "its lines have a sessionId, as those of Claude Code have"},
	{"claude-code", []string{"leafUuid", "summary"}, "it begins with a summary of Claude Code"},
	{"claude-code", []string{"snapshot", "messageId"}, "it begins with a snapshot of Claude Code"},
	{"mem0", []string{"id", "memory"}, "its lines are memories of mem0"},
	{"mem0", []string{"id", "content", "state", "categories"}, "its lines are memories of OpenMemory"},
	{"jsonl", []string{"text"}, "its lines are captures, with a text"},
}

func match(shapes []shape, keys []string) (format, why string) {
	for _, s := range shapes {
		all := true
		for _, k := range s.keys {
			all = all && slices.Contains(keys, k)
		}
		if all {
			return s.format, s.why
		}
	}
	return "", ""
}

func sniffArray(h []byte) (format, why string) {
	dec := json.NewDecoder(bytes.NewReader(h))
	_, _ = dec.Token() // the bracket
	return match(elementShapes, keysOf(dec))
}

func sniffObject(h []byte) (format, why string) {
	keys := keysOf(json.NewDecoder(bytes.NewReader(h)))
	if slices.Contains(keys, "type") {
		var l struct{ Type, Name, EntityType, From, To string }
		line, _, _ := bytes.Cut(h, []byte("\n"))
		if json.Unmarshal(line, &l) == nil && (l.Type == "entity" && l.Name != "" || l.Type == "relation" && l.From != "" && l.To != "") {
			return "mcp-memory", "its lines are entities and relations"
		}
	}
	if format, why = match(objectShapes, keys); format != "" {
		return format, why
	}
	return match(lineShapes, keys)
}

// keysOf returns the keys of the object that a decoder comes to, as far as its
// input goes.
func keysOf(dec *json.Decoder) []string {
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil
	}
	var keys []string
	depth, isKey := 1, true
	for depth > 0 {
		tok, err := dec.Token()
		if err != nil {
			break // the beginning ends here
		}
		switch d := tok.(type) {
		case json.Delim:
			if d == '{' || d == '[' {
				depth++
			} else {
				depth--
			}
			isKey = depth == 1
			continue
		case string:
			if depth == 1 && isKey {
				keys = append(keys, d)
				isKey = false
				continue
			}
		}
		if depth == 1 {
			isKey = true
		}
	}
	return keys
}

func sniffCSV(h []byte, name string) (format, why string) {
	line, _, found := bytes.Cut(h, []byte("\n"))
	named := slices.Contains([]string{".csv", ".tsv"}, strings.ToLower(path.Ext(name)))
	if !found && !named {
		return "", ""
	}
	heads := strings.Split(string(bytes.TrimSpace(line)), string(separator(line)))
	for _, h := range heads {
		if n := headName(strings.Trim(h, `"`)); (len(heads) > 1 || named) && slices.Contains(csvColumns["text"], n) {
			return "csv", "its header has a column " + n
		}
	}
	if named {
		return "csv", "its name ends in " + path.Ext(name)
	}
	return "", ""
}

// findFolder finds out what a folder holds.
func findFolder(dir string) (format, why string) {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	for _, f := range []struct{ name, format string }{{".obsidian", "obsidian"}, {"memorix.db", "memorix"}, {"observations.json", "memorix"}} {
		if has(f.name) {
			return f.format, "it holds " + f.name
		}
	}
	project := has("CLAUDE.md") || has("README.md") // what else it holds may be samples
	if a, err := openFolder(dir); err == nil && !project {
		if format, why = a.talk(); format != "" {
			return format, why
		}
	}
	for _, ext := range []string{".md", ".markdown", ".mdc", ".mdx"} {
		if p, ok := hasFile(dir, ext); ok {
			if format = sniffFolder(dir); format != "" && !project {
				return format, "it holds its transcripts"
			}
			return "markdown", "it holds " + filepath.Base(p)
		}
	}
	if format = sniffFolder(dir); format != "" {
		return format, "it holds its transcripts"
	}
	return "", ""
}

// findZip finds out whose export a zip is.
func findZip(p string) (format, why string, err error) {
	a, err := openFiles(p)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = a.close() }()
	if format, why = a.talk(); format != "" {
		return format, why, nil
	}
	for _, name := range []string{"memories.jsonl.gz", "memories.json"} {
		if _, ok := a.find(name); ok {
			return "mem0", "it holds " + name, nil
		}
	}
	if slices.ContainsFunc(a.files, func(f archived) bool { return isMarkdown(f.name) }) {
		return "", "", memory.Errorf(memory.CodeInvalid, "it is a zip of Markdown").WithHint("unpack it and name the folder")
	}
	return "", "", nil
}

// talk says whose conversations an archive holds.
func (a *archive) talk() (format, why string) {
	for _, f := range a.conversations() {
		r, err := f.open()
		if err != nil {
			continue
		}
		format, why = sniff(head(r), "")
		_ = r.Close()
		if format == "chatgpt" || format == "claude" {
			return format, f.name + ": " + why
		}
	}
	return "", ""
}
