package importer

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"mneme/memory"
)

// formatInfo is one format: stream reads it where it is one stream, path where it
// is a folder, an archive or a database.
type formatInfo struct {
	name   string
	about  string // for people, after the name
	stream func(r io.Reader, name string, opts Options) (Source, error)
	path   func(path string, opts Options) (Source, error)
}

var formats = []formatInfo{
	{"jsonl", "JSON lines: one capture a line, or one line of `memctl export`", streamOf(newJSONL), nil},
	{"csv", "CSV or TSV with a header; the column text is the memory", newCSV, nil},
	{"markdown", "Markdown files and folders, CLAUDE.md, AGENTS.md, MEMORY.md; the folder that `memctl export --format markdown` writes", nil, openMarkdown},
	{"obsidian", "an Obsidian vault", nil, openObsidian},
	{toGraph, "the JSONL file of the official MCP memory server", streamOf(newMCPMemory), nil},
	{"memorix", "Memorix: memorix.db, its data folder, observations.json or its JSON export", newMemorixJSON, openMemorix},
	{"mem0", "mem0: the JSON of its API, and the zip of OpenMemory's export", newMem0, openMem0},
	{"claude-code", "transcripts of Claude Code: a file, or a folder such as ~/.claude/projects", newClaudeCode, folderOf("claude-code", newClaudeCode)},
	{"codex", "transcripts of Codex: a file, or a folder such as ~/.codex/sessions", newCodex, folderOf("codex", newCodex)},
	{"chatgpt", "the export of ChatGPT: the zip, its folder, or conversations.json", newChatGPT, openArchive("chatgpt", chatGPTMembers)},
	{"claude", "the export of Claude: the zip, its folder, or conversations.json", newClaudeAI, openArchive("claude", claudeMembers)},
	{"locomo", "the LoCoMo data set, a namespace for each conversation, made if missing", streamOf(newLocomo), nil},
}

// Formats lists the names of the formats.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// About says in a line for people what a format is.
func About(format string) string {
	for _, f := range formats {
		if f.name == format {
			return f.about
		}
	}
	return ""
}

func streamOf[S Source](f func(io.Reader, Options) S) func(io.Reader, string, Options) (Source, error) {
	return func(r io.Reader, _ string, opts Options) (Source, error) { return f(r, opts), nil }
}

// open reads what path names: by path where the format has folders, archives or
// databases and path is one, else as a stream.
func (f *formatInfo) open(path string, opts Options) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	if f.path != nil && (info.IsDir() || f.stream == nil || packed(path)) {
		return f.path(path, opts)
	}
	if info.IsDir() {
		return nil, memory.Errorf(memory.CodeInvalid, "it is a directory, %s is read from a file", f.name)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	if opts.Source == "" {
		opts.folder = whereabouts(filepath.Dir(path))
	}
	src, err := f.stream(file, base(path), opts)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &fileSource{Source: src, file: file}, nil
}

// packed reports whether a file is an archive or a database.
func packed(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 16)
	n, _ := io.ReadFull(f, head)
	h := string(head[:n])
	return strings.HasPrefix(h, zipMagic) || strings.HasPrefix(h, sqliteMagic)
}

// fileSource closes the file of a source that reads a stream.
type fileSource struct {
	Source
	file *os.File
}

// Close closes source and file.
func (s *fileSource) Close() error {
	err := s.Source.Close()
	if ferr := s.file.Close(); err == nil {
		err = ferr
	}
	return err
}

// noFiles is embedded by sources that opened nothing themselves.
type noFiles struct{}

// Close does nothing.
func (noFiles) Close() error { return nil }

// base is the name of a file or folder without what is above it; "" for none.
func base(path string) string {
	if path == "" {
		return ""
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	return filepath.Base(abs)
}

// source is the name of what is imported: what the caller says, or of itself.
func (o *Options) source(name string) string {
	if o.Source != "" {
		return o.Source
	}
	return name
}
