package importer

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"mneme/memory"
)

// Options says how items are made. The zero value is good for jsonl.
type Options struct {
	// Namespace is where every item goes. For locomo it is only allowed if
	// the file holds one conversation; empty means one namespace for each.
	Namespace string
	// NamespacePrefix stands before the namespaces that locomo makes.
	NamespacePrefix string
	// Agent is the author of items that name none; empty makes them
	// malformed.
	Agent string
	// Source names what is imported in uris and in provenance, so that it is the
	// same source at every import; empty means the name of the file or folder.
	Source string
	// Scope is the scope of items that name none. With memory.ScopeAgent every
	// item is Agent's own, whoever spoke.
	Scope memory.Scope

	folder string // where a file lies that its source is named after, as in Provenance
}

// Item is one memory and where it goes, or a part of the knowledge graph: then
// Entity or Relation is set and Capture is empty.
type Item struct {
	Namespace string // Options.Namespace, or the conversation's
	Capture   memory.Capture
	Line      int    // 1-based line, where the format has lines; else a running number
	Where     string // a name for people: "line 7", "notes/a.md line 12", "conv-26 D1:3"
	RecordID  string // of an export of ours: the record it was exported from
	Home      string // of an export of ours: the namespace it was exported from
	Away      bool   // of an export of ours: it goes into another namespace than that, or one that is called so elsewhere
	Version   int    // of an export of ours: the record's version
	Wrote     string // of an exported file: SHA-256 of what its folder's manifest says was written; "" if nothing
	Untouched bool   // of an exported file: it is still what was written

	Exported *memory.ExportLine // of an export of ours: all that it says

	// Update says that what was imported under the same id or uri before is to
	// be revised if it differs. Otherwise it is told as a conflict, unless the
	// texts are equal.
	Update bool
	// Group, if not empty, is the conversation that holds all memories of the file
	// that the item is from. Items of a group follow each other, are known by their
	// uri, and have a Hash in their provenance: one that is there with this hash has
	// not changed in its file.
	Group      string
	Provenance *Provenance // of items of a group, and of others that have a Says

	Entity   *Entity
	Relation *Relation

	Left []Skip // what of it was left out
}

// Entity is a node of a knowledge graph.
type Entity struct {
	Name         string
	Type         string
	Observations []string
}

// Relation is an edge of a knowledge graph, between entities by their names.
type Relation struct{ From, To, Type string }

// ItemError is one malformed item. Reading goes on behind it.
type ItemError struct {
	Line  int    // as in Item
	Where string // as in Item
	Err   error
}

func (e *ItemError) Error() string { return e.Where + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the item.
func (e *ItemError) Unwrap() error { return e.Err }

// Skip is something that was left out because it is no memory: a tool's output,
// a deleted row, a file of another kind. Reading goes on behind it.
type Skip struct {
	Line  int    // as in Item
	Where string // as in Item
	Why   string // the same words for the same reason, so that they can be counted
}

func (s *Skip) Error() string { return s.Where + ": left out: " + s.Why }

// Source yields items until io.EOF. It is not safe for concurrent use. After
// an error that is neither an *ItemError nor a *Skip it is finished. Close
// releases files that it opened itself.
type Source interface {
	Next() (Item, error)
	Close() error
}

// Open begins to read r in a format of one stream. It does not close r.
func Open(format string, r io.Reader, opts Options) (Source, error) {
	f, err := lookUp(format, opts)
	if err != nil {
		return nil, err
	}
	if f.stream == nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%s is read from a file or folder, not from a stream", format).
			WithHint("name its path")
	}
	return f.stream(r, "", opts)
}

// OpenPath begins to read a file or folder in a format. Close the source when done.
func OpenPath(format, path string, opts Options) (Source, error) {
	f, err := lookUp(format, opts)
	if err != nil {
		return nil, err
	}
	return f.open(path, opts)
}

func lookUp(format string, opts Options) (*formatInfo, error) {
	if opts.Namespace != "" {
		if err := memory.CheckName("namespace", opts.Namespace); err != nil {
			return nil, err
		}
	}
	for i := range formats {
		if formats[i].name == format {
			return &formats[i], nil
		}
	}
	return nil, memory.Errorf(memory.CodeInvalid, "format %q is unknown", format).
		WithHint("formats are %s", strings.Join(Formats(), ", "))
}

// check validates a finished item.
func check(item Item, where string) (Item, error) {
	item.Where = where
	for i := range item.Left {
		item.Left[i].Line, item.Left[i].Where = item.Line, join(where, item.Left[i].Where)
	}
	if err := item.Capture.Validate(); err != nil {
		return Item{}, &ItemError{Line: item.Line, Where: where, Err: err}
	}
	if item.Update && item.Group == "" && item.RecordID == "" {
		item.say()
	}
	return item, nil
}

// damaged is the error of a file that cannot be read on.
func damaged(format string, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	var e *memory.Error
	if errors.As(err, &e) {
		return err
	}
	return memory.Errorf(memory.CodeInvalid, "not a %s file: %w", format, err)
}

// MakeName is memory.MakeName.
func MakeName(s string) string { return memory.MakeName(s) }

// nameOr is MakeName with a stable stand-in for names in other scripts.
func nameOr(prefix, s string) string {
	if name := MakeName(s); name != "" {
		return name
	}
	return fmt.Sprintf("%s-%x", prefix, digest([]byte(s))[:4])
}
