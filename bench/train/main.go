// Command train makes the weights of the static embedder from copies of public
// repositories. It has two steps, so that what goes into the weights can be read:
//
//	train corpus -mirrors DIR -o corpus.txt      texts and pairs of texts; -teams has more of them
//	train fit -corpus corpus.txt -o weights.bin  vocabulary, vectors, quantisation
//
// Both are deterministic: equal repositories give equal bytes on one kind of processor.
// docs/model-card.md lists the sources with their commits.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(log.Ltime)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: train corpus|fit [flags]")
	}
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	out := fs.String("o", "", "file to write")
	switch args[0] {
	case "corpus":
		mirrors := fs.String("mirrors", "", "folder with the repositories")
		more := fs.Bool("teams", false, "read the sources of commits, comments of code, meetings and requests as well")
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		list := sources()
		if *more {
			list = append(list, teams()...)
		}
		return corpusCommand(*mirrors, list, *out)
	case "fit":
		return fitCommand(fs, args[1:], out)
	}
	return fmt.Errorf("unknown step %q", args[0])
}

func corpusCommand(mirrors string, list []source, out string) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := writeCorpus(mirrors, list, f, os.Stdout); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
