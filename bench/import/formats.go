package main

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"mneme/memory"
)

// together is how many memories a Markdown file has as sections, or a conversation as messages.
const together = 10

// format is one that memories are imported in.
type format struct {
	name, about string // as memctl and people call it
	file        string // or folder
	detail      string
	write       func(path string, texts []string) error
}

type source struct {
	format
	path string
}

var formats = []format{
	{"jsonl", "JSON lines", "memories.jsonl", "", inFile(writeLines)},
	{"markdown", "Markdown", "notes", fmt.Sprintf("files of %d sections", together), writeNotes},
	{"mcp-memory", "JSONL of the official memory server", "memory.jsonl", "entities of one observation each", inFile(writeGraph)},
	{"chatgpt", "archive of ChatGPT", "chatgpt.zip", fmt.Sprintf("conversations of %d messages", together), inFile(writeChats)},
}

// check reads what an import says it did: it found n memories, and they were new, or all there.
func (f format) check(said []byte, n int, again bool) error {
	var sum struct {
		Namespaces []struct {
			Found, Created, Duplicates int
			Graph                      *struct{ Entities, Observations, Created int }
		}
	}
	if err := json.Unmarshal(said, &sum); err != nil {
		return err
	}
	if len(sum.Namespaces) != 1 {
		return errors.New("one namespace is wanted")
	}
	got := sum.Namespaces[0]
	if g := got.Graph; g != nil {
		created := g.Entities + g.Observations
		if again {
			created = 0
		}
		if g.Entities != n || g.Created != created {
			return fmt.Errorf("%d entities are wanted, and %d things created", n, created)
		}
		return nil
	}
	if counted := map[bool]int{false: got.Created, true: got.Duplicates}[again]; got.Found != n || counted != n {
		return fmt.Errorf("%d memories are wanted, all of them there already: %v", n, again)
	}
	return nil
}

// inFile makes of a writer one that writes a file.
func inFile(write func(w io.Writer, texts []string) error) func(path string, texts []string) error {
	return func(path string, texts []string) (err error) {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		w := bufio.NewWriter(f)
		if err := write(w, texts); err != nil {
			return err
		}
		return w.Flush()
	}
}

// writeLines writes a capture a line.
func writeLines(w io.Writer, texts []string) error {
	enc := json.NewEncoder(w)
	for _, text := range texts {
		if err := enc.Encode(memory.Capture{Text: text, Kind: memory.KindFact}); err != nil {
			return err
		}
	}
	return nil
}

// writeGraph writes an entity a line.
func writeGraph(w io.Writer, texts []string) error {
	enc := json.NewEncoder(w)
	for i, text := range texts {
		if err := enc.Encode(map[string]any{"type": "entity", "name": fmt.Sprintf("note %06d", i), "entityType": "note", "observations": []string{text}}); err != nil {
			return err
		}
	}
	return nil
}

// writeNotes writes files of sections, as a folder of notes has them.
func writeNotes(dir string, texts []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i := 0; i < len(texts); i += together {
		var b strings.Builder
		fmt.Fprintf(&b, "---\ntags: [bench, notes]\n---\n# Note %d\n", i/together)
		for k, text := range texts[i:min(i+together, len(texts))] {
			fmt.Fprintf(&b, "\n## Part %d\n\nIt says: %s\n", k, strings.ReplaceAll(text, "\n", " "))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("note-%06d.md", i/together)), []byte(b.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeChats writes an export of ChatGPT: conversations as trees of messages, in which users
// and the assistant take turns.
func writeChats(w io.Writer, texts []string) error {
	type object map[string]any
	var all []object
	for i := 0; i < len(texts); i += together {
		id := fmt.Sprintf("conversation-%06d", i/together)
		root := id + "-root"
		mapping, parent := object{root: object{"id": root, "message": nil, "parent": nil}}, root
		for k, text := range texts[i:min(i+together, len(texts))] {
			node := fmt.Sprintf("%s-%d", id, k)
			mapping[node] = object{"id": node, "parent": parent, "message": object{"id": node, "author": object{"role": []string{"user", "assistant"}[k%2]},
				"create_time": 1.7e9 + float64(i+k), "content": object{"content_type": "text", "parts": []string{text}}, "recipient": "all", "metadata": object{}}}
			parent = node
		}
		all = append(all, object{"conversation_id": id, "title": fmt.Sprint("About ", i), "create_time": 1.7e9 + float64(i), "mapping": mapping, "current_node": parent})
	}
	z := zip.NewWriter(w)
	f, err := z.Create("conversations.json")
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(all), z.Close())
}
