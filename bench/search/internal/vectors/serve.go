package vectors

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"mneme/bench/search/internal/peer"
)

// Serve runs one of our engines as a process that answers what the C++ program
// answers: args are ENGINE DIM M EFC. It returns when in ends.
func Serve(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	o, err := newOwn(args)
	if err != nil {
		return err
	}
	defer o.close()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		r, err := o.command(ctx, strings.Fields(lines.Text()))
		if err != nil {
			r = peer.Reply{Error: err.Error(), Unsupported: errors.Is(err, peer.ErrUnsupported)}
		}
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", b); err != nil {
			return err
		}
	}
	return lines.Err()
}

// command runs one command; its words are what peers/main.cpp describes.
func (o *own) command(ctx context.Context, words []string) (peer.Reply, error) {
	if len(words) == 0 {
		return peer.Reply{}, errors.New("empty command")
	}
	if o.set == nil && words[0] != "build" && words[0] != "load" {
		return peer.Reply{}, errors.New("nothing was built or loaded")
	}
	a := &arguments{words: words[1:]}
	switch words[0] {
	case "build":
		file, n, threads := a.text(), a.number(), a.number()
		return a.run(func() (peer.Reply, error) { return o.build(ctx, file, n, threads) })
	case "search":
		file, n, k, ef, threads, least, to := a.text(), a.number(), a.number(), a.number(), a.number(), a.float(), a.text()
		return a.run(func() (peer.Reply, error) { return o.searchFile(ctx, file, n, k, ef, threads, least, to) })
	case "filter":
		file := a.text()
		return a.run(func() (peer.Reply, error) { return peer.Reply{}, o.setFilter(file) })
	case "replace":
		file, rows, n, threads := a.text(), a.text(), a.number(), a.number()
		return a.run(func() (peer.Reply, error) { return o.replace(ctx, file, rows, n, threads) })
	case "save":
		path := a.text()
		return a.run(func() (peer.Reply, error) { return o.save(path) })
	case "load":
		path := a.text()
		return a.run(func() (peer.Reply, error) { return o.load(ctx, path) })
	}
	return peer.Reply{}, fmt.Errorf("unknown command %s", words[0])
}

// arguments reads the words of a command one after the other.
type arguments struct {
	words []string
	err   error
}

func (a *arguments) text() string {
	if len(a.words) == 0 {
		a.err = errors.Join(a.err, errors.New("too few words"))
		return ""
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w
}

func (a *arguments) number() int {
	n, err := strconv.Atoi(a.text())
	if err != nil || n < 0 {
		a.err = errors.Join(a.err, errors.New("a number is wanted"))
	}
	return n
}

func (a *arguments) float() float64 {
	x, err := strconv.ParseFloat(a.text(), 64)
	if err != nil {
		a.err = errors.Join(a.err, errors.New("a number is wanted"))
	}
	return x
}

func (a *arguments) run(do func() (peer.Reply, error)) (peer.Reply, error) {
	if a.err != nil {
		return peer.Reply{}, a.err
	}
	return do()
}

// timed runs do with that many processors.
func timed(threads int, do func() error) (seconds float64, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(threads, 1)))
	began := time.Now()
	err = do()
	return time.Since(began).Seconds(), err
}

// writeRows writes row numbers as int32.
func writeRows(path string, rows []int32) error {
	b := make([]byte, 4*len(rows))
	for i, r := range rows {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(r))
	}
	return os.WriteFile(path, b, 0o600)
}

// readRows reads what writeRows or the C++ program wrote.
func readRows(path string) ([]int32, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rows := make([]int32, len(b)/4)
	for i := range rows {
		rows[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return rows, nil
}
