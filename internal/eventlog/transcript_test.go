package eventlog_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
)

var rewrite = flag.Bool("rewrite", false, "write what the writer does into testdata")

// TestWriterTranscripts runs testdata/writer_*.txt: commands, a line of dashes,
// and what came of them. With -rewrite the outcome is written instead.
//
//	append TEXT…       a frame with one event per word
//	fault NAME…        the next appends go wrong so
//	offline N          the next N looks at the log fail
//	put TERM TEXT      another writer's frame, at the end of the log
//	cut SEQ            the log loses what is behind SEQ
//	recreate           the stream is made again
//	deliver            late messages arrive
//	resync             read the tail
//	adopt              apply what was handed out, and resume
//	log                everything in the log, and whether it is void
func TestWriterTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/writer_*.txt")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no transcripts")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(t, err)
			got := newTranscript(t).run(string(text))
			if *rewrite {
				must(t, os.WriteFile(file, []byte(got), 0o644))
			} else if got != string(text) {
				t.Errorf("got:\n%s\nrun with -rewrite to accept", got)
			}
		})
	}
}

type transcript struct {
	t       *testing.T
	f       *eventlogtest.Fake
	w       *eventlog.Writer
	pending []eventlog.Message
}

func newTranscript(t *testing.T) *transcript {
	f := eventlogtest.NewFake()
	info, err := f.Info(testContext(t))
	must(t, err)
	return &transcript{t: t, f: f, w: eventlog.NewWriter(f, eventlog.Tail{Term: 1}, eventlog.WriterOptions{Identity: info.Identity})}
}

// run keeps comments and commands and replaces the outcomes.
func (x *transcript) run(text string) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		commands, _, _ := strings.Cut(block, "\n----")
		var result []string
		if strings.HasPrefix(commands, "----") {
			x.t.Fatalf("outcome without a command: %q", block)
		}
		for line := range strings.SplitSeq(commands, "\n") {
			fmt.Fprintln(&out, line)
			if !strings.HasPrefix(line, "#") {
				result = append(result, x.command(strings.Fields(line))...)
			}
		}
		if len(result) > 0 {
			fmt.Fprintf(&out, "----\n%s\n", strings.Join(result, "\n"))
		}
		fmt.Fprintln(&out)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func (x *transcript) command(args []string) []string {
	ctx := testContext(x.t)
	switch args[0] {
	case "append":
		a, err := x.w.Append(ctx, words(args[1:]))
		if err != nil {
			return x.failure(err)
		}
		return []string{fmt.Sprintf("stored at %d, %d bytes, chain %.6s", a.Seq, len(a.Frame), a.Chain)}
	case "fault":
		for _, a := range args[1:] {
			x.f.Inject(eventlogtest.Fault(a))
		}
	case "offline":
		x.f.Offline(x.number(args[1]))
	case "put":
		at := x.w.Tail()
		f := events.Frame{Term: uint64(x.number(args[1])), Seq: at.Seq + 1, Previous: at.Chain, Events: words(args[2:])}
		return []string{fmt.Sprintf("put at %d", x.f.Put(f.Encode()))}
	case "cut":
		x.f.CutSuffix(uint64(x.number(args[1])))
	case "recreate":
		x.f.Recreate()
	case "deliver":
		return []string{fmt.Sprintf("%d stored", x.f.Deliver())}
	case "resync":
		found, err := x.w.Resync(ctx)
		if err != nil {
			return x.failure(err)
		}
		x.pending = found
		return append([]string{fmt.Sprintf("%d messages", len(found))}, describe(found)...)
	case "adopt":
		return x.adopt()
	case "log":
		return x.log(ctx)
	default:
		x.t.Fatalf("unknown command %q", args)
	}
	return nil
}

func (x *transcript) number(s string) int {
	n, err := strconv.Atoi(s)
	must(x.t, err)
	return n
}

func words(args []string) [][]byte {
	var out [][]byte
	for _, a := range args {
		out = append(out, []byte(a))
	}
	return out
}

func (x *transcript) failure(err error) []string {
	out := []string{"error: " + err.Error()}
	var kinds []string
	for _, k := range []error{eventlog.ErrRefused, eventlog.ErrUnknown, eventlog.ErrAbsent, eventlog.ErrNoSpace, eventlog.ErrBehind, eventlog.ErrClosed} {
		if errors.Is(err, k) {
			kinds = append(kinds, k.Error())
		}
	}
	if len(kinds) > 0 {
		out = append(out, "is: "+strings.Join(kinds, ", "))
	}
	var adopt *eventlog.AdoptError
	if errors.As(err, &adopt) {
		x.pending = adopt.Messages
		out = append(out, describe(adopt.Messages)...)
	}
	return out
}

func describe(msgs []eventlog.Message) []string {
	var out []string
	for _, m := range msgs {
		f, err := events.DecodeFrame(m.Data)
		if err != nil {
			out = append(out, fmt.Sprintf("  %d: %v", m.Seq, err))
			continue
		}
		out = append(out, fmt.Sprintf("  %d: term %d %s", m.Seq, f.Term, f.Events))
	}
	return out
}

// adopt does what a leader does with adopted messages: it advances the chain
// over all of them, and the term over those that count.
func (x *transcript) adopt() []string {
	at := x.w.Tail()
	for _, m := range x.pending {
		f, err := events.DecodeFrame(m.Data)
		if err == nil && f.Continues(at.Shard, m.Seq, at.Chain, at.Term) {
			at.Term = max(at.Term, f.Term)
		}
		at.Seq, at.Chain = m.Seq, events.NextChain(at.Chain, m.Seq, m.Data)
	}
	x.pending = nil
	x.w.Resume(at)
	return []string{fmt.Sprintf("resumed at %d, term %d", at.Seq, at.Term)}
}

func (x *transcript) log(ctx context.Context) []string {
	var out []string
	var at eventlog.Tail
	err := x.f.Read(ctx, 0, 0, func(m eventlog.Message) error {
		f, err := events.DecodeFrame(m.Data)
		must(x.t, err)
		void := " void"
		if f.Continues(0, m.Seq, at.Chain, at.Term) {
			at.Term, void = f.Term, ""
		}
		at.Chain = events.NextChain(at.Chain, m.Seq, m.Data)
		out = append(out, fmt.Sprintf("%d: term %d %s%s", m.Seq, f.Term, f.Events, void))
		return nil
	})
	must(x.t, err)
	return out
}
