// Package judged reads sets of memories with judged questions: LoCoMo,
// MemDaily and BEAM.
//
// Its job: find the data on this machine, turn each set into captures by
// namespace and questions with the ids of the captures that answer them, and
// count what is odd in the files.
//
// Invariants: a unit of evidence is the id of a capture; what a question names
// twice counts once; evidence that points nowhere stays, so that it weighs on
// recall.
//
// Not its job: talking to a node, scoring (package stats).
package judged

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"mneme/memory"
)

// Names lists the sets that Load reads.
var Names = []string{"locomo", "memdaily", "beam"}

// ErrNoData is returned when a set's files are not on this machine.
var ErrNoData = errors.New("data not found")

// Set is one set of judged questions.
type Set struct {
	Name       string
	Namespaces []Namespace
	Counts     Counts
}

// Namespace is what belongs together: memories and questions about them.
type Namespace struct {
	Name      string
	Captures  []memory.Capture // each with an id of its own
	Questions []Question
}

// Question is one question and the ids of the captures that hold its answer.
type Question struct {
	Text     string
	Category string
	Evidence []string // distinct; empty if the question cannot be scored
	Apart    bool     // not part of the set's mean: it has no answer in the memories
}

// Counts are the oddities of a set.
type Counts struct {
	Captures, Questions int
	NoEvidence          int // questions without evidence: not scored
	Malformed           int // entries of evidence that are not exactly one id
	Missing             int // ids of evidence that no memory has
	Unread              int // memories that could not be read
	Cut                 int // memories longer than a capture may be, cut
}

// FindData returns the folder with the sets: dir if it is not empty, else
// $MNEME_DATA as given by env, else shared/data beside the repository that the
// working directory lies in. Without any it returns ErrNoData, saying where it
// looked.
func FindData(dir, env, workDir string) (string, error) {
	for _, d := range []string{dir, env} {
		if d != "" {
			if info, err := os.Stat(d); err != nil || !info.IsDir() {
				return "", fmt.Errorf("%w: %s is not a folder", ErrNoData, d)
			}
			return d, nil
		}
	}
	root, err := repository(workDir)
	if err != nil {
		return "", err
	}
	d := filepath.Join(filepath.Dir(root), "shared", "data")
	if info, err := os.Stat(d); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%w: neither $MNEME_DATA nor %s is there", ErrNoData, d)
	}
	return d, nil
}

// repository walks up from dir to the folder that holds go.mod.
func repository(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("%w: $MNEME_DATA is not set and no repository is around here", ErrNoData)
		}
		dir = up
	}
}

// Load reads a set from the data folder.
func Load(name, dir string) (*Set, error) {
	var set *Set
	var err error
	switch name {
	case "locomo":
		set, err = loadLocomo(filepath.Join(dir, "locomo", "dev.json"))
	case "memdaily":
		set, err = loadMemDaily(filepath.Join(dir, "memdaily"))
	case "beam":
		set, err = loadBeam(filepath.Join(dir, "beam"))
	default:
		return nil, fmt.Errorf("set %q is unknown; sets are %v", name, Names)
	}
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrNoData, err)
		}
		return nil, fmt.Errorf("load %s: %w", name, err)
	}
	set.Name = name
	for _, ns := range set.Namespaces {
		set.Counts.Captures += len(ns.Captures)
	}
	return set, nil
}

// files lists the JSON files of a folder by name; none is ErrNotExist.
func files(dir string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s holds no .json: %w", dir, os.ErrNotExist)
	}
	slices.Sort(found)
	return found, nil
}

// addQuestion counts a question and adds it to the namespace.
func (s *Set) addQuestion(ns *Namespace, q Question) {
	s.Counts.Questions++
	if len(q.Evidence) == 0 {
		s.Counts.NoEvidence++
	}
	ns.Questions = append(ns.Questions, q)
}

// addUnit adds a unit of evidence unless it is there, and counts it if no
// capture has it.
func (s *Set) addUnit(q *Question, unit string, known map[string]bool) {
	if slices.Contains(q.Evidence, unit) {
		return
	}
	if !known[unit] {
		s.Counts.Missing++
	}
	q.Evidence = append(q.Evidence, unit)
}

// fit cuts a text that is longer than a capture may be.
func (s *Set) fit(text string) string {
	if len(text) <= memory.MaxTextBytes {
		return text
	}
	s.Counts.Cut++
	end := memory.MaxTextBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
