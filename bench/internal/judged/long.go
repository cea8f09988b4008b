package judged

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"mneme/bench/internal/corpus"
	"mneme/memory"
)

const (
	// longRevision holds the documents: the set stays what it is while they change.
	longRevision = "bc08f74e34a9"
	longLines    = 2000
)

// longDocs are documents of 9 to 40 KB, one memory each.
var longDocs = []string{"README.md", "docs/architecture.md", "docs/cluster.md", "docs/configuration.md", "docs/formats.md", "docs/guarantees.md",
	"docs/model-card.md", "docs/nats.md", "docs/robustness.md", "docs/rough-edges.md", "docs/security.md"}

// longQuestions were written from the documents, before anything was searched.
var longQuestions = []struct {
	text string
	docs []string
}{
	{"Which HTTP header tells a client when to try again after it sent too much at once?", []string{"docs/architecture.md"}},
	{"how many tags may one memory have at most", []string{"docs/configuration.md"}},
	{"How does the kubelet probe a node that asks its clients for certificates?", []string{"docs/configuration.md"}},
	{"exit code of memnode when the data directory is in use", []string{"docs/configuration.md"}},
	{"which environment variables does memctl read", []string{"docs/configuration.md"}},
	{"on how many pairs of texts was the built-in embedder trained, and with which loss", []string{"docs/model-card.md"}},
	{"licences of the sources that static-1 learned from", []string{"docs/model-card.md"}},
	{"What happens to a NATS message whose body begins with { but is no capture?", []string{"docs/nats.md"}},
	{"header with the idempotency key when publishing over NATS", []string{"docs/nats.md", "docs/guarantees.md"}},
	{"which subjects does an agent need permissions for", []string{"docs/nats.md"}},
	{"byte layout of a frame of the log", []string{"docs/formats.md"}},
	{"What does a sealed value consist of: nonce, key id, ciphertext?", []string{"docs/formats.md"}},
	{"Which faults are injected between the nodes, cut links, slow disks, clocks that jump?", []string{"docs/robustness.md"}},
	{"how is it checked that what clients saw is linearizable", []string{"docs/robustness.md"}},
	{"steps to grow from three nodes to five", []string{"docs/cluster.md"}},
	{"Two of three machines are lost for good, how do I go on with the last one?", []string{"docs/cluster.md"}},
	{"does forgetting a memory make the disk smaller", []string{"docs/rough-edges.md", "docs/guarantees.md", "docs/security.md"}},
	{"how is DNS rebinding defended against", []string{"docs/security.md"}},
	{"What exactly does an acknowledgement mean after a loss of power?", []string{"docs/guarantees.md"}},
	{"how do I install memctl and capture my first memory", []string{"README.md"}},
}

// loadLong makes a set of our own documents, each one memory, among one-liners,
// the first lines of Go's documentation comments. It needs git and the history of
// this repository.
func loadLong(ctx context.Context, _ string) (*Set, error) {
	c, err := corpus.Load(ctx, corpus.Options{Count: 1 << 20, Seed: identifierSeed, Sources: []string{"go-std"}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoData, err)
	}
	docs, err := history(ctx, longRevision, longDocs)
	if err != nil {
		return nil, err
	}
	return long(docs, c.Texts, longLines), nil
}

// history returns files as they were at a revision.
func history(ctx context.Context, revision string, paths []string) (map[string]string, error) {
	docs := map[string]string{}
	for _, path := range paths {
		out, err := exec.CommandContext(ctx, "git", "show", revision+":"+path).Output()
		if err != nil {
			return nil, fmt.Errorf("%w: git show %s:%s: %w", ErrNoData, revision, path, err)
		}
		docs[path] = string(out)
	}
	return docs, nil
}

// long asks for documents among the first lines of texts, so many distinct ones,
// and, apart, for the documents alone, which shows whether the questions are fair.
func long(docs map[string]string, texts []string, lines int) *Set {
	set := &Set{Scoring: First}
	alone, among := Namespace{Name: "long-alone"}, Namespace{Name: "long-among"}
	seen, known := map[string]bool{}, map[string]bool{}
	for _, text := range texts {
		line, _, _ := strings.Cut(text, "\n")
		if len(seen) == lines {
			break
		}
		if line == "" || seen[line] {
			continue
		}
		among.Captures = append(among.Captures, memory.Capture{ID: fmt.Sprintf("long/line/%d", len(seen)), Agent: "dev", Text: line, Kind: memory.KindFact})
		seen[line] = true
	}
	for _, path := range longDocs {
		if docs[path] != "" {
			known["long/"+path] = true
			alone.Captures = append(alone.Captures, memory.Capture{ID: "long/" + path, Agent: "dev", Text: set.fit(docs[path]), Kind: memory.KindFact})
		}
	}
	among.Captures = append(among.Captures, alone.Captures...)
	for _, q := range longQuestions {
		out := Question{Text: q.text, Category: "among one-liners"}
		for _, path := range q.docs {
			set.addUnit(&out, "long/"+path, known)
		}
		set.addQuestion(&among, out)
		out.Category, out.Apart = "alone", true
		set.addQuestion(&alone, out)
	}
	set.Namespaces = []Namespace{alone, among}
	return set
}
