package importer

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"mneme/memory"
)

// Formats lists the names of the formats that Open reads.
func Formats() []string { return []string{"jsonl", "locomo"} }

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
}

// Item is one capture and where it goes.
type Item struct {
	Namespace string // Options.Namespace, or the conversation's
	Capture   memory.Capture
	Line      int    // jsonl: 1-based line; locomo: running number of the turn
	RecordID  string // of an export line: the record it was exported from
}

// ItemError is one malformed item. Reading goes on behind it.
type ItemError struct {
	Line  int    // as in Item
	Where string // a name for people: "line 7", "conv-26 D1:3"
	Err   error
}

func (e *ItemError) Error() string { return e.Where + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the item.
func (e *ItemError) Unwrap() error { return e.Err }

// Source yields items until io.EOF. It is not safe for concurrent use. After
// an error that is not an *ItemError it is finished.
type Source interface {
	Next() (Item, error)
}

// Open begins to read r in a format. It does not close r.
func Open(format string, r io.Reader, opts Options) (Source, error) {
	if opts.Namespace != "" {
		if err := memory.CheckName("namespace", opts.Namespace); err != nil {
			return nil, err
		}
	}
	switch format {
	case "jsonl":
		return newJSONL(r, opts), nil
	case "locomo":
		return newLocomo(r, opts), nil
	}
	return nil, memory.Errorf(memory.CodeInvalid, "format %q is unknown", format).
		WithHint("formats are %s", strings.Join(Formats(), ", "))
}

// check validates a finished item.
func check(item Item, where string) (Item, error) {
	if err := item.Capture.Validate(); err != nil {
		return Item{}, &ItemError{Line: item.Line, Where: where, Err: err}
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
