package loader

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// Options says what is imported, and how. Its functions are needed, but for Made.
type Options struct {
	Agent  string    // who imports: reads, and revises
	Format string    // of all files; "" = it is found out
	In     io.Reader // what the file "-" is
	// Of says where the items of a format go, and how they are made.
	Of func(format string) (importer.Options, error)

	DryRun bool // only read and count; the node may be nil
	Prune  bool // forget memories of files and sections that are no longer there
	Again  bool // bring back what was forgotten
	Revise bool // let exports revise what they say they are, whatever became of that and whoever wrote them

	Moved bool // take another folder of a source's name for the one that was imported before

	Note    func(format string, args ...any) // tells people something beside the summary
	Bar     func(what string) Bar
	Confirm func(Question) error                // where the answer is no it is an error
	Taking  func(namespace, file string) string // the command that imports one file with Revise
	Sleep   func(ctx context.Context, d time.Duration) error
	Made    func(recordID string) // is called for each record that was made or revised
}

// Question is asked before something is done.
type Question struct {
	What    string
	Instead string // what to do where the answer is no
	Flag    string // of the command, which answers this question alone; "" where a flag asked for it already
}

// Bar shows how far work has come.
type Bar struct {
	Report func(memory.Progress)
	Finish func()
}

// load is one import.
type load struct {
	node Node // nil in a dry run that found none
	opt  Options

	file    string
	format  string // of the file
	single  bool   // it is no folder
	rows    rows   // of the file, where it is a table or a graph
	send    sender
	known   known
	graph   graph
	summary Summary
}

func newLoad(node Node, opt Options) *load {
	l := &load{node: Patient(node, opt.Sleep), opt: opt, summary: Summary{Format: opt.Format, DryRun: opt.DryRun}}
	l.send = sender{load: l, ready: map[string]bool{}, empty: map[string]bool{}, records: map[string]uint64{}, moved: map[string]string{}}
	l.known = known{load: l, room: maxWaiting, sources: map[source]bool{}, entered: map[string]bool{}, looked: map[string]bool{}, pasts: map[string]*forgotten{}, asked: map[place]bool{}, moved: map[source]bool{}, seen: map[source]bool{}, copies: map[string]map[origin]copied{}, ids: map[string]*residents{}, contents: map[string]*contents{}, folders: map[source]string{}, said: map[string]*byID{}}
	l.known.file.known = &l.known
	l.graph = graph{load: l}
	return l
}

// Load imports files and folders, and "-", one after the other. What could not be imported of
// them is in the summary; an error ends the import, and what was sent before it stays.
func Load(ctx context.Context, node Node, opt Options, files []string) (*Summary, error) {
	if err := present(files); err != nil {
		return nil, err
	}
	l := newLoad(node, opt)
	l.send.bar = opt.Bar("import")
	var err error
	for _, file := range files {
		if err = l.read(ctx, file); err != nil {
			break
		}
	}
	if err == nil {
		err = l.send.derived(ctx)
	}
	if err == nil {
		err = l.send.bring(ctx)
	}
	if err != nil {
		l.send.abandon()
	}
	l.send.bar.Finish()
	if err != nil {
		if l.send.done > 0 && !opt.DryRun {
			opt.Note("%s sent; run the same import again to go on, nothing is imported twice", counted(int(l.send.done), "memory was", "memories were"))
		}
		return nil, fmt.Errorf("import %s: %w", called(l.file), err)
	}
	l.known.absent()
	if opt.Prune {
		if err := l.prune(ctx); err != nil {
			return nil, err
		}
	}
	return &l.summary, nil
}

// present tells paths that are not there before anything is sent.
func present(files []string) error {
	for _, file := range files {
		if file == "" {
			return memory.Errorf(memory.CodeInvalid, "import: a path is empty").WithHint("name a file or a folder, or - for standard input")
		}
		if _, err := os.Stat(file); err != nil && file != "-" {
			return memory.Errorf(memory.CodeInvalid, "import %s: %w", file, importer.Unnamed(err, file)).WithHint("nothing was imported")
		}
	}
	return nil
}

// called is what an import is read from, as people call it.
func called(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// unreadable is the error of a file that cannot be read on: no node is at fault. Who imports names the file.
func unreadable(file string, err error) error {
	var typed *memory.Error
	if err == nil || errors.As(err, &typed) {
		return err
	}
	return memory.Errorf(memory.CodeInvalid, "%w", importer.Unnamed(err, file))
}

// open finds out what a file is, says so, and begins to read it.
func (l *load) open(file string) (importer.Source, error) {
	in := bufio.NewReaderSize(l.opt.In, 64<<10)
	l.format = l.opt.Format
	if l.format == "" {
		var why string
		var err error
		if file == "-" {
			l.format, why, err = importer.FindStream(in)
		} else {
			l.format, why, err = importer.Find(file)
		}
		if err != nil {
			return nil, err
		}
		l.summary.found(file, l.format, why)
		if l.format != "jsonl" {
			l.opt.Note("%s: %s: %s", file, l.format, why)
		}
	}
	opts, err := l.opt.Of(l.format)
	if err != nil {
		return nil, err
	}
	if l.single = true; file == "-" {
		return importer.Open(l.format, in, opts)
	}
	info, err := os.Stat(file)
	l.single = err == nil && !info.IsDir()
	return importer.OpenPath(l.format, file, opts)
}

func (l *load) read(ctx context.Context, file string) (err error) {
	l.file = file
	src, err := l.open(file)
	if err != nil {
		return unreadable(file, err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	taken := false
	l.known.noted, l.rows = false, rows{}
	for {
		if err := ctx.Err(); err != nil {
			return interrupted(err)
		}
		item, err := src.Next()
		var bad *importer.ItemError
		var skip *importer.Skip
		switch {
		case errors.Is(err, io.EOF):
			return errors.Join(l.finishFile(ctx), l.prunes(taken))
		case errors.As(err, &bad):
			l.summary.malformed(Problem{File: file, Line: bad.Line, Where: bad.Where, Code: memory.CodeInvalid, Detail: bad.Err.Error()})
			continue
		case errors.As(err, &skip):
			l.summary.skip(file, skip)
			continue
		case err != nil:
			return errors.Join(unreadable(file, err), l.finishFile(ctx))
		}
		taken = true
		for i := range item.Left {
			l.summary.skip(file, &item.Left[i])
		}
		if err := l.take(ctx, item); err != nil {
			return err
		}
	}
}

// prunes says where a file or folder that was read is none that can be pruned: one that holds
// nothing may have been named by mistake, or not be there today.
func (l *load) prunes(taken bool) error {
	if !l.opt.Prune || l.known.noted || l.summary.Malformed > 0 {
		return nil
	}
	if taken {
		l.opt.Note("%s: --prune does nothing there: it is for files and folders of Markdown and Obsidian, not for exports", l.file)
		return nil
	}
	return memory.Errorf(memory.CodeNotFound, "it holds nothing to import, so nothing was pruned").
		WithHint("if all that was imported from it is to be forgotten: memctl import --take-back --source NAME")
}

func interrupted(err error) error {
	return memory.Errorf(memory.CodeTimeout, "interrupted").WithCause(err)
}

// finishFile sends what is left of a file.
func (l *load) finishFile(ctx context.Context) error {
	if err := l.known.file.leave(ctx); err != nil {
		return err
	}
	if err := l.send.flush(ctx); err != nil {
		return err
	}
	if err := l.send.bring(ctx); err != nil {
		return err
	}
	return l.graph.flush(ctx)
}

// take sends an item on its way.
func (l *load) take(ctx context.Context, item importer.Item) error {
	switch {
	case l.opt.DryRun && (item.Entity != nil || item.Relation != nil):
		l.counts(item.Namespace).Found++
		l.send.done++
		return nil
	case item.Entity != nil || item.Relation != nil:
		return l.graph.add(ctx, item)
	}
	if l.format == "csv" {
		if first := l.rows.first(item); first != "" {
			l.settle(item)
			l.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: "its id is that of " + first + ", which says something else and counts; " +
				"where ids are no ids, call their column something else, and rows are known by what they say"})
			return nil
		}
	}
	l.known.note(item)
	there, err := l.known.settled(ctx, &item)
	if there || err != nil {
		return err
	}
	return l.fresh(ctx, item)
}

// fresh sends an item that is not known to be there.
func (l *load) fresh(ctx context.Context, item importer.Item) error {
	if item.Group != "" {
		l.known.keep(item.Namespace, item.Capture.URI)
	}
	if l.opt.DryRun {
		l.counts(item.Namespace).Found++
		l.send.done++
		return nil
	}
	return l.send.add(ctx, item)
}

func (l *load) counts(namespace string) *Counts { return l.summary.namespace(namespace) }

// settle counts an item about which nothing is left to do, but what its caller counts.
func (l *load) settle(item importer.Item) *Counts {
	counts := l.counts(item.Namespace)
	counts.Found++
	l.send.done++
	l.send.report()
	return counts
}

// refused counts an item that did not go in.
func (l *load) refused(item importer.Item, e *memory.ItemError) {
	p := Problem{File: l.file, Line: item.Line, Where: item.Where, Code: memory.CodeConflict, Detail: "its id or uri is taken by something else"}
	if p.Where == "" {
		p.Where = item.Capture.ID
	}
	if e != nil {
		p.Code, p.Detail = e.Code, e.Detail
	}
	counts := l.counts(item.Namespace)
	if p.Code == memory.CodeConflict {
		counts.Conflicts++
	} else {
		counts.Rejected++
	}
	l.summary.problem(p)
}

// made tells of a record that was made or revised.
func (l *load) made(recordID string) {
	if l.opt.Made != nil {
		l.opt.Made(recordID)
	}
}

// left counts an item that is left out.
func (l *load) left(item importer.Item, why string) {
	l.summary.skip(l.file, &importer.Skip{Line: item.Line, Where: item.Where, Why: why})
}

// memories counts them in words.
func memories(n int) string { return counted(n, "memory", "memories") }

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
