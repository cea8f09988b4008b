package corpus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

const (
	longText   = 200 // bytes from which a description is more than one line
	readBudget = 2 * time.Minute
)

// debian reads what apt knows of available packages. A machine without apt
// gives nothing.
func debian(ctx context.Context, take func(string) bool) error {
	path, err := exec.LookPath("apt-cache")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readBudget)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "dumpavail")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("apt-cache: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("apt-cache: %w", err)
	}
	more, err := parsePackages(out, take)
	if !more || err != nil {
		cancel() // enough was read; the program need not write the rest
		_ = cmd.Wait()
		return err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("apt-cache: %w", err)
	}
	return nil // what apt-cache managed to list before it failed is good text
}

// parsePackages reads paragraphs of Debian control data (deb-control(5)) and
// reports whether take wanted more to the end.
func parsePackages(r io.Reader, take func(string) bool) (more bool, err error) {
	in := bufio.NewReader(r)
	var p paragraph
	for {
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return true, fmt.Errorf("read packages: %w", err)
		}
		atEnd := err != nil
		line = strings.TrimRight(line, "\r\n")
		if line != "" {
			p.add(line)
		}
		if (line == "" || atEnd) && p.description != "" {
			if !take(p.text()) {
				return false, nil
			}
		}
		if line == "" {
			p = paragraph{}
		}
		if atEnd {
			return true, nil
		}
	}
}

// paragraph is what is kept of one package.
type paragraph struct {
	name, description string
	open              bool // continuation lines belong to the description
}

func (p *paragraph) add(line string) {
	if line[0] == ' ' || line[0] == '\t' {
		if p.open && len(p.description) < maxText {
			rest := strings.TrimSpace(line)
			if rest == "." {
				rest = ""
			}
			p.description += "\n" + rest
		}
		return
	}
	key, value, _ := strings.Cut(line, ":")
	p.open = false
	switch key {
	case "Package":
		p.name = strings.TrimSpace(value)
	case "Description", "Description-en":
		p.description, p.open = strings.TrimSpace(value), true
	}
}

func (p *paragraph) text() string { return p.name + ": " + p.description }
