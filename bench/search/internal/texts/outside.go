package texts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mneme/bench/search/internal/peer"
)

// outside is an index in a process of its own: the C and C++ peers.
type outside struct {
	name    string
	command []string // the program and the engine; the path follows
	dir     string
	process *peer.Process
	took    time.Duration
}

// newOutside returns what makes an engine of the program in dir.
func newOutside(program, name string) func(dir string) engine {
	return func(dir string) engine {
		return &outside{name: name, command: []string{program, name}, dir: dir}
	}
}

// last is how long the last call of build or search took within the process.
func (o *outside) last() time.Duration { return o.took }

func (o *outside) start() (err error) {
	// It ends when its input does, at the latest with this process.
	o.process, err = peer.Start(context.Background(), o.name, append(o.command[:2:2], filepath.Join(o.dir, "index")))
	return err
}

func (o *outside) ask(format string, args ...any) (peer.Reply, error) {
	r, err := o.process.Ask(format, args...)
	o.took = time.Duration(r.Seconds * float64(time.Second))
	return r, err
}

func (o *outside) build(_ context.Context, docs documents) (err error) {
	if err := os.Mkdir(o.dir, 0o700); err != nil {
		return err
	}
	lines := filepath.Join(o.dir, "lines")
	if err := os.WriteFile(lines, []byte(strings.Join(docs.lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	if err := o.start(); err != nil {
		return err
	}
	_, err = o.ask("build %s", lines)
	return errors.Join(err, o.process.Stop(), os.Remove(lines))
}

func (o *outside) open() error {
	if err := o.start(); err != nil {
		return err
	}
	_, err := o.ask("open")
	return err
}

func (o *outside) search(_ context.Context, terms []string, k int) ([]hit, error) {
	r, err := o.ask("search %d %s", k, strings.Join(terms, " "))
	hits := make([]hit, len(r.Hits))
	for i, h := range r.Hits {
		hits[i] = hit{doc: uint32(h[0]), score: h[1]}
	}
	return hits, err
}

func (o *outside) close() error { return o.process.Stop() }
