// Package program is the frame of a bench program: signals, flags that all have,
// exit codes, and the tables with what the machine was doing meanwhile.
//
// Not its job: measuring.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
)

// Main runs a program until it ends or is interrupted, and ends the process with
// exit status 1 where it failed. limit ends a run that hangs.
func Main(name string, limit time.Duration, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, limit)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Output says where tables go beside standard output.
type Output struct{ file, json string }

// Flags returns a set of flags that prints its help to stderr, with -o.
func (o *Output) Flags(name string, stderr io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.file, "o", "", "write the tables to this file too")
	return fs
}

// JSON adds the flag -json.
func (o *Output) JSON(fs *flag.FlagSet) {
	fs.StringVar(&o.json, "json", "", "write the tables to this file as JSON")
}

// Parse reads the flags; a program takes no other arguments.
func Parse(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return nil
}

// Watch begins to watch what else the machine does. Write notes it under the last
// table, with the commit that was measured, and writes all of them.
func (o *Output) Watch() (write func(stdout io.Writer, tables ...*report.Table) error) {
	watched, before := proc.Watch(), proc.LoadAverage()
	return func(stdout io.Writer, tables ...*report.Table) error {
		if share, err := watched(); err == nil && len(tables) > 0 {
			last := tables[len(tables)-1]
			last.Note("other processes of this machine used %.0f %% of its processor time meanwhile", 100*share.Others)
			if after := proc.LoadAverage(); before != "" && after != "" {
				last.Note("load average of a minute: %s before, %s after", before, after)
			}
		}
		if commit := report.Commit(); commit != "" && len(tables) > 0 {
			tables[len(tables)-1].Note("measured %s, commit %s", time.Now().UTC().Format(time.DateOnly), commit)
		}
		if err := report.WriteJSON(o.json, report.Machine(), tables...); err != nil {
			return err
		}
		return report.Write(stdout, o.file, report.Machine(), tables...)
	}
}

// Numbers reads positive numbers between commas.
func Numbers(list string) ([]int, error) {
	var out []int
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a positive number", word)
		}
		out = append(out, n)
	}
	return out, nil
}

// Sleep waits for d, or until ctx ends, which is its error.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
