package importer

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mneme/memory"
)

// folderOf reads all .jsonl files below a folder, in the order of their names.
func folderOf(format string, open func(io.Reader, string, Options) (Source, error)) func(string, Options) (Source, error) {
	return func(dir string, opts Options) (Source, error) {
		a, err := openFiles(dir)
		if err != nil {
			return nil, err
		}
		var chapters []chapter
		for _, f := range a.files {
			if strings.HasSuffix(f.name, ".jsonl") {
				chapters = append(chapters, chapter{f, open})
			}
		}
		if len(chapters) == 0 {
			return nil, memory.Errorf(memory.CodeInvalid, "it holds no transcript of %s: there is no .jsonl file below it", format)
		}
		return a.source(chapters, opts), nil
	}
}

// hasFile reports whether there is a file below dir whose name ends so, and its path.
func hasFile(dir, ext string) (string, bool) {
	found := ""
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error { // what cannot be read holds nothing
		if err == nil && isMarkdown(ext) && p != dir && hidden(d) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(p, ext) {
			found = p
			return fs.SkipAll
		}
		return nil
	})
	return found, found != ""
}

// claudeCodeLine is one line of a transcript of Claude Code.
type claudeCodeLine struct {
	Type        string `json:"type"`
	UUID        string `json:"uuid"`
	SessionID   string `json:"sessionId"`
	Timestamp   string `json:"timestamp"`
	Cwd         string `json:"cwd"`
	Branch      string `json:"gitBranch"`
	Sidechain   bool   `json:"isSidechain"`
	Meta        bool   `json:"isMeta"`
	APIError    bool   `json:"isApiErrorMessage"`
	CompactPart bool   `json:"isCompactSummary"`
	Message     struct {
		Role    string          `json:"role"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// transcript is a transcript of lines; line queues what one says.
type transcript struct {
	queued
	opts Options
	in   *lines
	line func(raw []byte) error
}

func newTranscript(r io.Reader, opts Options) *transcript {
	t := &transcript{opts: opts, in: newLines(r, maxTranscriptLine)}
	t.fill = func() error {
		raw, err := t.in.next()
		if err != nil {
			return t.told(err)
		}
		if err := t.line(raw); err != nil {
			t.tell(t.in.bad(plainJSONError(err)))
		}
		t.halves(raw, t.in.n, t.in.where())
		return nil
	}
	return t
}

func newClaudeCode(r io.Reader, _ string, opts Options) (Source, error) {
	t := newTranscript(r, opts)
	t.line = func(raw []byte) error {
		var l claudeCodeLine
		if err := json.Unmarshal(raw, &l); err != nil {
			return err
		}
		return t.claudeCode(&l)
	}
	return t, nil
}

func (t *transcript) claudeCode(l *claudeCodeLine) error {
	switch {
	case l.Type != "user" && l.Type != "assistant":
		t.tell(t.in.skip("of type " + clean(l.Type, 40)))
		return nil
	case l.UUID == "" || l.SessionID == "":
		return errors.New("a message without uuid or sessionId")
	case l.Meta:
		t.tell(t.in.skip("what Claude Code added to the conversation"))
		return nil
	case l.Sidechain:
		t.tell(t.in.skip("what a sub-agent said"))
		return nil
	case l.APIError:
		t.tell(t.in.skip("an error of the model's service"))
		return nil
	}
	text, other := blocks(l.Message.Content)
	for _, why := range other {
		t.tell(t.in.skip(why))
	}
	if text == "" {
		if len(other) == 0 {
			t.tell(t.in.skip(empty))
		}
		return nil
	}
	if strings.HasPrefix(text, "<command-") || strings.HasPrefix(text, "<local-command-") || strings.HasPrefix(text, "[Request interrupted") {
		t.tell(t.in.skip("a command of Claude Code or its output"))
		return nil
	}
	when := t.time(l.Timestamp, t.in.n, t.in.where())
	project := ""
	if l.Cwd != "" {
		project = clean(l.Cwd[strings.LastIndexAny(l.Cwd, `/\`)+1:], 200)
	}
	fields := map[string]any{"cwd": l.Cwd, "project": project, "git_branch": l.Branch, "model": l.Message.Model}
	if l.CompactPart {
		fields["summary"] = true
	}
	speak(&t.queue, &t.opts, spoken{format: "claude-code", agent: "claude-code", conversation: l.SessionID, id: l.UUID, role: l.Type, text: text, at: when,
		line: t.in.n, where: t.in.where(), fields: fields})
	return nil
}

// blocks joins the text of a message, which is a string or a list of blocks, and
// says what else there is.
func blocks(content json.RawMessage) (text string, other []string) {
	if json.Unmarshal(content, &text) == nil {
		return strings.TrimSpace(text), nil
	}
	var list []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &list) != nil {
		return "", []string{"content that is neither text nor blocks"}
	}
	var texts []string
	for _, b := range list {
		switch b.Type {
		case "text", "input_text", "output_text":
			texts = append(texts, b.Text)
		case "thinking", "redacted_thinking":
			other = append(other, "thinking")
		case "tool_use", "tool_result", "server_tool_use", "web_search_tool_result":
			other = append(other, "a call or result of a tool")
		default:
			other = append(other, "of type "+clean(b.Type, 40))
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n\n")), other
}

// sniffFolder is the format of the first transcript below a folder.
func sniffFolder(dir string) (format string) {
	p, ok := hasFile(dir, ".jsonl")
	if !ok {
		return ""
	}
	f, err := os.Open(p)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	format, _ = sniff(head(f), filepath.Base(p))
	if format == "claude-code" || format == "codex" {
		return format
	}
	return ""
}
