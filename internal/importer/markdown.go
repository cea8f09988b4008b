package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mneme/memory"
)

// maxMarkdown bounds a Markdown file.
const maxMarkdown = 16 << 20

// markdown reads Markdown files, one memory a section. A vault of Obsidian is the
// same with its tags and links.
type markdown struct {
	queued
	format string // markdown or obsidian
	opts   Options
	source string
	folder string // as in Provenance
	dir    string
	files  []found

	note     note      // the file that is being read
	sections []section // of it, to come: their items take far more room

	manifests manifests
}

// linked is why a link is left out.
const linked = "a symbolic link, which is not followed"

// found is a file to read, or what is to be told instead.
type found struct {
	name string // below dir, with slashes
	tell error
}

func openMarkdown(path string, opts Options) (Source, error) {
	return openNotes("markdown", path, opts)
}
func openObsidian(path string, opts Options) (Source, error) {
	return openNotes("obsidian", path, opts)
}

// openNotes reads one file, named after the folder that it lies in, or all below a
// folder.
func openNotes(format, p string, opts Options) (Source, error) {
	info, err := os.Stat(p)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	s := &markdown{format: format, opts: opts, manifests: manifests{}}
	if info.IsDir() {
		s.dir = p
		if err := s.walk(); err != nil {
			return nil, err
		}
	} else {
		s.dir = filepath.Dir(p)
		s.files = []found{{name: filepath.Base(p)}}
	}
	if opts.Source == "" {
		s.folder = whereabouts(s.dir)
	}
	s.source = uriPath(opts.source(base(s.dir)))
	if s.source == "" {
		s.source = format
	}
	s.fill = s.read
	return s, nil
}

// whereabouts tells a folder from others of its name, on any machine: its path from the root of
// its repository on, elsewhere with the folder above it.
func whereabouts(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	from := filepath.Dir(filepath.Dir(dir))
	for root := dir; filepath.Dir(root) != root; root = filepath.Dir(root) {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			from = filepath.Dir(root)
			break
		}
	}
	rel, err := filepath.Rel(from, dir)
	if err != nil {
		return ""
	}
	return clean(filepath.ToSlash(rel), memory.MaxURIBytes/3)
}

// isMarkdown reports whether a file is one by its name.
func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdc", ".mdx":
		return true
	}
	return false
}

// hidden reports whether a file or folder is left out where notes are looked for.
func hidden(d fs.DirEntry) bool {
	return strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"
}

// walk lists the files, without following links and without what is hidden.
func (s *markdown) walk() error {
	err := filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(s.dir, p)
		if rerr != nil {
			return rerr
		}
		name := filepath.ToSlash(rel)
		if err != nil {
			s.files = append(s.files, found{tell: &ItemError{Where: name, Err: Unnamed(err, p)}})
			return nil
		}
		hidden := name != "." && hidden(d)
		why := ""
		switch {
		case d.IsDir() && !hidden, d.Name() == ExportManifest:
			return nil
		case hidden:
			why = "hidden, or of a package"
		case d.Type()&fs.ModeSymlink != 0:
			why = linked
		case !d.Type().IsRegular():
			why = "no regular file"
		case !isMarkdown(name):
			why = "not Markdown"
		}
		f := found{name: name}
		if why != "" {
			f.tell = &Skip{Where: name, Why: why}
		}
		s.files = append(s.files, f)
		if len(s.files) > maxArchived {
			return fmt.Errorf("it holds more than %d files", maxArchived)
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return memory.Errorf(memory.CodeInvalid, "%w", Unnamed(err, s.dir))
	}
	return nil
}

// read queues the next section of a file, or begins the next file.
func (s *markdown) read() error {
	if len(s.sections) > 0 {
		sec := s.sections[0]
		s.sections = s.sections[1:]
		s.section(sec)
		return nil
	}
	if len(s.files) == 0 {
		return io.EOF
	}
	f := s.files[0]
	s.files = s.files[1:]
	if f.tell != nil {
		s.tell(f.tell)
		return nil
	}
	text, when, err := s.load(f.name)
	if err != nil {
		s.bad(0, f.name, err)
		return nil
	}
	if bytes.IndexByte(text[:min(len(text), sampleSize)], 0) >= 0 {
		s.bad(0, f.name, errors.New("is no text, or UTF-16 without a byte order mark: it holds NUL bytes; if it is text, save it as UTF-8"))
		return nil
	}
	front, body, lines, err := cutFrontMatter(text)
	if err != nil {
		s.skip(1, f.name+" line 1", "the fields of front matter that is no YAML; it stands in the text")
	}
	if stringOf(front[exportKey]) != "" {
		s.exported(f.name, SumOf(text), front, body)
		return nil
	}
	if front["excalidraw-plugin"] != nil {
		s.skip(0, f.name, "a drawing")
		return nil
	}
	s.begin(f.name, front, body, lines, when)
	return nil
}

// sampleSize is how much of a file shows whether it is text.
const sampleSize = 8 << 10

// load reads a file as UTF-8, with line feeds alone at the ends of its lines.
func (s *markdown) load(name string) ([]byte, time.Time, error) {
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	f, err := os.Open(path)
	if err != nil {
		return nil, time.Time{}, Unnamed(err, path)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	size := int(min(info.Size(), maxMarkdown)) // most files are small, and many
	var text bytes.Buffer
	text.Grow(size + bytes.MinRead)
	if _, err := text.ReadFrom(io.LimitReader(decodedBy(f, min(size+16, 64<<10)), maxMarkdown+1)); err != nil {
		return nil, time.Time{}, err
	}
	if text.Len() > maxMarkdown {
		return nil, time.Time{}, fmt.Errorf("is larger than %d bytes", maxMarkdown)
	}
	return text.Bytes(), info.ModTime(), nil
}

// note is what the sections of a file share.
type note struct {
	name  string // of the file, below the folder
	uri   string // of the file
	group string
	kind  memory.Kind
	title string
	tags  []string // of front matter, clean, at most as many as a memory has
	front json.RawMessage
	said  string // the whole front matter, for digests; of one that is large, its own digest
	at    *time.Time

	anchors map[string]int // how often each uri came
}

// begin divides a file into its sections.
func (s *markdown) begin(name string, front map[string]any, body []byte, lines int, when time.Time) {
	n := note{name: name, uri: uriPath(s.source + "/" + name), kind: noteKind(name, front), said: fmt.Sprint(front), anchors: map[string]int{}}
	if n.group = n.uri; len(n.group) > memory.MaxConversation {
		n.group = contentID("notes", n.uri)
	}
	if len(n.said) > memory.MaxMetadataBytes {
		n.said = hash(n.said)
	}
	n.title = clean(first(stringOf(front["title"]), strings.TrimSuffix(path.Base(name), path.Ext(name))), maxTitle)
	s.frontMatter(&n, front)
	at, err := parseTime(stamp(front))
	if err != nil {
		s.skip(1, name+" line 1", timeless(err)+"; the memory has the time of its file")
	}
	if n.at = at; n.at == nil {
		n.at = inRange(when.Truncate(time.Second))
	}
	s.note, s.sections = n, splitSections(body, lines+1)
	if len(s.sections) == 0 {
		s.skip(0, name, "a file without text")
	}
}

// frontMatter takes the tags of front matter, and keeps what else it says: tags, too, that are none or have no room.
func (s *markdown) frontMatter(n *note, front map[string]any) {
	rest := maps.Clone(front)
	var tags []string
	for _, key := range []string{"tags", "tag"} {
		if _, fields := front[key].(map[string]any); !fields {
			tags = append(tags, stringsOf(front[key])...)
			delete(rest, key)
		}
	}
	for i, t := range tags {
		tags[i] = strings.TrimPrefix(t, "#")
	}
	var whole bool
	n.tags, whole = cleanTags(tags...)
	encode := func() (err error) {
		if n.front = nil; len(rest) == 0 {
			return nil
		}
		if n.front, err = json.Marshal(rest); err == nil && len(n.front) > memory.MaxMetadataBytes {
			n.front, err = nil, errors.New("too large")
		}
		return err
	}
	where := n.name + " line 1"
	if !whole {
		rest["tags"] = tags
		if encode() == nil {
			return
		}
		delete(rest, "tags")
		s.skip(1, where, "tags that are too many or too long")
	}
	if encode() != nil {
		s.skip(1, where, "front matter for which metadata have no room")
	}
}

// section queues a section. Its text begins with the headings above it, since it is found and
// read alone. Its id is of the section alone, as it was when texts had no headings above them,
// so that what was forgotten then stays so.
func (s *markdown) section(sec section) {
	n := &s.note
	where := fmt.Sprintf("%s line %d", n.name, sec.first)
	if !utf8.ValidString(sec.text) {
		s.bad(sec.first, where, notUTF8([]byte(sec.text)))
		return
	}
	if strings.ContainsRune(sec.text, 0) {
		s.bad(sec.first, where, errors.New("holds NUL bytes, as UTF-16 without a byte order mark does; save it as UTF-8"))
		return
	}
	if len(sec.text) > memory.MaxTextBytes {
		s.bad(sec.first, where, fmt.Errorf("a block of %d bytes, up to line %d, is larger than a memory may be (%d) and cannot be divided", len(sec.text), sec.last, memory.MaxTextBytes))
		return
	}
	uri := anchored(n.uri, sec.headings, n.anchors)
	fields := map[string]any{"headings": sec.headings, "title": n.title, "front_matter": n.front}
	tags := slices.Clone(n.tags)
	if s.format == "obsidian" {
		inText, links := obsidianMarks(sec.text)
		inText, _ = cleanTags(inText...) // they all stand in the text
		for _, t := range inText {
			if len(tags) < memory.MaxTags && !slices.Contains(tags, t) {
				tags = append(tags, t)
			}
		}
		fields["links"] = links
	}
	c := memory.Capture{Text: sec.text, Kind: n.kind, URI: uri, Conversation: n.group, Tags: tags, OccurredAt: n.at}
	s.opts.speak(&c, "")
	own := hash(append(append([]string{sec.text, string(c.Kind)}, c.Tags...), n.said)...)
	c.ID = contentID(s.format, uri, own)
	p := Provenance{From: s.format, Source: s.source, Folder: s.folder, Path: n.name, Lines: fmt.Sprintf("%d-%d", sec.first, sec.last), Hash: own}
	if above := strings.Join(sec.above, "\n"); above != "" && len(above)+1+len(sec.text) <= memory.MaxTextBytes {
		c.Text = above + "\n" + sec.text
		p.Hash, p.Section = hash(own, above), own
	}
	item := Item{Namespace: s.opts.Namespace, Capture: c, Line: sec.first, Update: true, Group: n.group, Provenance: &p}
	item.describeWhole(p, fields)
	s.add(item, where)
}

// anchored is the uri of a section: the file, and behind # its headings. One that
// was there before in the file gets a number.
func anchored(file string, headings []string, anchors map[string]int) string {
	uri := file
	if len(headings) > 0 {
		segs := make([]string, 0, len(headings))
		for _, h := range headings {
			segs = append(segs, slug(h))
		}
		anchor := strings.Join(segs, "/")
		if len(anchor) > memory.MaxURIBytes/3 {
			anchor = hash(anchor)
		}
		uri += "#" + anchor
	}
	anchors[uri]++
	return SectionURI(uri, anchors[uri])
}

// SectionURI is the uri of the nth section of a file below the same headings; the first has theirs.
func SectionURI(headings string, n int) string {
	if n < 2 {
		return headings
	}
	return fmt.Sprintf("%s~%d", headings, n)
}

// HeadingsOf takes apart what SectionURI makes.
func HeadingsOf(uri string) (headings string, n int) {
	at := strings.LastIndexByte(uri, '~')
	if at < 0 || len(uri)-at > 9 { // a digest is longer
		return uri, 1
	}
	n, err := strconv.Atoi(uri[at+1:])
	if err != nil || n < 2 || uri != SectionURI(uri[:at], n) {
		return uri, 1
	}
	return uri[:at], n
}

// noteKind is the kind that front matter names, or what the file's name says:
// instructions for agents are practices.
func noteKind(name string, front map[string]any) memory.Kind {
	if k := memory.Kind(strings.ToLower(stringOf(front["kind"]))); k != "" && memory.ValidKind(k) {
		return k
	}
	switch strings.ToUpper(path.Base(name)) {
	case "CLAUDE.MD", "CLAUDE.LOCAL.MD", "AGENTS.MD", "GEMINI.MD", "SKILL.MD":
		return memory.KindPractice
	}
	return memory.KindOther
}

// exportKey is the key of front matter by which a file of our own export is known.
const exportKey = "mneme"

// exported queues the memory of a file that an export of ours wrote. Its text, and
// what its front matter says, may have been changed since.
func (s *markdown) exported(name, sum string, front map[string]any, body []byte) {
	line, err := parseExported(front, body)
	if err != nil {
		s.bad(1, name, err)
		return
	}
	item := exportedItem(&s.opts, line)
	item.Update = true
	if abs, err := filepath.Abs(filepath.Join(s.dir, filepath.FromSlash(name))); err == nil {
		item.Wrote = s.manifests.wrote(abs)
		item.Untouched = item.Wrote == sum
	}
	if !utf8.Valid(body) {
		s.bad(1, name, notUTF8(body))
		return
	}
	s.add(item, name)
}
