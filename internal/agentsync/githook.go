package agentsync

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"sync"
)

const (
	hookBegin = "# >>> mneme: memctl integrate git\n"
	hookMade  = "# This file was made for it.\n"
	hookEnd   = "# <<< mneme\n"
)

// shell is a first line of a script that the lines of ours can follow.
var shell = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^#!\s*\S*/(?:env\s+)?(?:ba|da|z|k|a)?sh\b`) })

// scriptEdit has a command in a script, directly below its first line: what comes later may
// end the script.
type scriptEdit struct{ command string }

func (e scriptEdit) put(text []byte) ([]byte, error) {
	without, err := e.take(text)
	if err != nil {
		return nil, err
	}
	block := e.command + " || :\n" + hookEnd
	if without == nil {
		return []byte("#!/bin/sh\n" + hookBegin + hookMade + block), nil
	}
	if !shell().Match(without) {
		return nil, errors.New("line 1: it is no script of a shell; have it run `" + e.command + "` itself")
	}
	block = hookBegin + block
	i := bytes.IndexByte(without, '\n')
	if i < 0 {
		return slices.Concat(without, []byte("\n"+block[:len(block)-1])), nil
	}
	return slices.Concat(without[:i+1], []byte(block), without[i+1:]), nil
}

func (e scriptEdit) take(text []byte) ([]byte, error) {
	from := bytes.Index(text, []byte(hookBegin))
	if from < 0 {
		return text, nil
	}
	block := text[from:]
	n := bytes.Index(block, []byte("\n"+hookEnd[:len(hookEnd)-1]))
	if n < 0 {
		return nil, errors.New("the lines of Mneme have no end: take them out by hand")
	}
	block, after := block[:n+len(hookEnd)], block[n+len(hookEnd):]
	before := text[:from]
	if len(after) > 0 && after[0] == '\n' {
		after = after[1:]
	} else {
		before = bytes.TrimSuffix(before, []byte("\n"))
	}
	if bytes.Contains(block, []byte(hookMade)) && string(before) == "#!/bin/sh\n" && len(after) == 0 {
		return nil, nil
	}
	return slices.Concat(before, after), nil
}

func (e scriptEdit) has(text []byte) (bool, error) {
	return bytes.Contains(text, []byte(hookBegin)), nil
}

// GitHook says what a hook of Git becomes that runs a command, or no longer does. A hook in the
// project, whose folder is root, has to lie there or in the repository, git.
func GitHook(path, root, git, command string, remove bool) (*Change, error) {
	var within []string
	if inside(path, root) {
		within = []string{root, git}
	}
	c, err := readFile(path, within...)
	if err != nil {
		return nil, err
	}
	c.root = root
	e := scriptEdit{command}
	if c.bare, err = e.take(c.Before); err != nil {
		return nil, unreadable(path, err)
	}
	switch {
	case remove:
		c.After = c.bare
	case c.Before == nil:
		c.mode = 0o755
		c.After, err = e.put(nil)
	case c.mode&0o111 == 0:
		return nil, refused(path, "it is not executable, so Git does not run it")
	default:
		c.After, err = e.put(c.Before)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	if c.Before != nil && c.Changed() && c.mode&0o200 == 0 {
		return nil, refused(path, "it is read-only")
	}
	return c, nil
}

// GitHookState looks into a hook of Git for the lines of GitHook.
func GitHookState(path string) State {
	var s State
	if c, err := readFile(path); err == nil {
		_ = s.look(file{path: path, hook: true, edit: scriptEdit{}}, c.Before) // lines without an end are nobody's
	}
	return s
}

// Command is a line of a shell.
func Command(program string, args ...string) string { return line(quotePOSIX, program, args) }
