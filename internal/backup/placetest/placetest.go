// Package placetest is the contract of a place of backups, which each implementation keeps.
package placetest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"mneme/internal/backup"
)

// Run checks a place that is empty.
func Run(t *testing.T, p backup.Place) {
	t.Helper()
	ctx := t.Context()
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return err
		}
	}
	read := func(name string) string {
		t.Helper()
		r, err := p.Open(ctx, name)
		if err != nil {
			t.Fatalf("open %s: %v", name, err)
		}
		b, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			t.Fatalf("read %s: %v", name, err)
		}
		return string(b)
	}
	names := func(folder string) string {
		t.Helper()
		files, err := p.List(ctx, folder)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range files {
			if f.Changed.IsZero() || f.Size != int64(len(read(f.Name))) {
				t.Errorf("%+v", f)
			}
			all = append(all, f.Name)
		}
		return strings.Join(all, " ")
	}
	if got := names("log"); got != "" {
		t.Errorf("an empty place has %q", got)
	}
	if _, err := p.Open(ctx, "log/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := p.Remove(ctx, "log/none"); err != nil {
		t.Errorf("removing nothing: %v", err)
	}
	long := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	for name, content := range map[string]string{"log/b": "two", "log/a": long, "logs/other": "x", "keys/a": "k", "keys/empty": ""} {
		if err := p.Put(ctx, name, text(content)); err != nil {
			t.Fatalf("put %s: %v", name, err)
		}
		if got := read(name); got != content {
			t.Errorf("%s holds %d bytes, not %d", name, len(got), len(content))
		}
	}
	if got := names("log"); got != "log/a log/b" {
		t.Errorf("the folder has %q", got)
	}
	if err := p.Put(ctx, "log/b", text("three")); err != nil || read("log/b") != "three" {
		t.Errorf("replaced by %q, %v", read("log/b"), err)
	}
	// What is broken off is never seen, and what was there stays.
	broken := errors.New("broken off")
	for _, name := range []string{"log/b", "log/c"} {
		err := p.Put(ctx, name, func(w io.Writer) error {
			if _, err := io.WriteString(w, long); err != nil {
				return err
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("put that broke off: %v", err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	err := p.Put(ended, "log/d", func(w io.Writer) error {
		_, err := io.WriteString(w, "four")
		cancel()
		return err
	})
	if err == nil {
		t.Error("a put whose context ended succeeded")
	}
	if got := names("log"); got != "log/a log/b" || read("log/b") != "three" {
		t.Errorf("after broken puts the folder has %q, and %q", got, read("log/b"))
	}
	if err := p.Sweep(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Errorf("sweep: %v", err)
	}
	if err := p.Remove(ctx, "log/b"); err != nil || names("log") != "log/a" || names("keys") != "keys/a keys/empty" {
		t.Errorf("after a removal: %q %q, %v", names("log"), names("keys"), err)
	}
	if strings.TrimSpace(p.String()) == "" {
		t.Error("it has no name")
	}
}
