package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// queue holds what one line, row or conversation gave, until it is asked for.
type queue struct{ entries []entry }

// entry is an item or what is to be told of it.
type entry struct {
	item Item
	err  error
}

func (q *queue) add(item Item, where string) {
	item, err := check(item, where)
	q.entries = append(q.entries, entry{item, err})
}

func (q *queue) tell(err error) { q.entries = append(q.entries, entry{err: err}) }

func (q *queue) bad(line int, where string, err error) {
	q.tell(&ItemError{Line: line, Where: where, Err: err})
}

func (q *queue) skip(line int, where, why string) {
	q.tell(&Skip{Line: line, Where: where, Why: why})
}

// time reads a time of another tool. One that is not understood is told, and the
// memory has none.
func (q *queue) time(s string, line int, where string) *time.Time {
	t, err := parseTime(s)
	if err != nil {
		q.skip(line, where, timeless(err)+"; the memory has the time of its import")
	}
	return t
}

// halves tells where JSON has halves of characters, and what was queued of it is without them: of a tool's output, say,
// nothing is.
func (q *queue) halves(raw []byte, line int, where string) {
	if hasHalf(raw) && slices.ContainsFunc(q.entries, func(e entry) bool {
		says, _ := json.Marshal(e.item.Capture)
		return bytes.ContainsRune(says, utf8.RuneError)
	}) {
		q.skip(line, where, halved)
	}
}

// timeless says what is wrong with a time.
func timeless(err error) string {
	if errors.Is(err, errYears) {
		return "a time that " + errYears.Error()
	}
	return "a time that is not understood"
}

// next takes the first entry off.
func (q *queue) next() (Item, error, bool) {
	if len(q.entries) == 0 {
		q.entries = nil
		return Item{}, nil, false
	}
	e := q.entries[0]
	q.entries = q.entries[1:]
	return e.item, e.err, true
}

// queued is a source that fills a queue, one line, row or conversation at a time,
// until fill returns an error.
type queued struct {
	queue
	fill func() error
	done error
}

// Next returns the next entry.
func (s *queued) Next() (Item, error) {
	for {
		if item, err, ok := s.next(); ok {
			return item, err
		}
		if s.done != nil {
			return Item{}, s.done
		}
		s.done = s.fill()
	}
}

// told makes an entry of an error that is about one item, and returns any other.
func (s *queued) told(err error) error {
	switch err.(type) {
	case *ItemError, *Skip:
		s.tell(err)
		return nil
	}
	return err
}

func atLine(n int) string { return "line " + strconv.Itoa(n) }
