package query

import "mneme/memory"

// Answers are bounded in bytes too: two hundred records of 256 KiB that consist of
// control characters are 300 MB of JSON. One record always fits, so every page
// goes on.
const (
	maxAnswer = 8 << 20 // from which on a page is full
	maxBatch  = 1 << 20 // from which on events are given before others are opened
	// maxHistory is how many events a history holds.
	maxHistory = 10_000
	// recordFrame is about how long a record without its texts is in an answer.
	recordFrame = 1 << 10
)

// answerBytes is about how long a record is in an answer.
func answerBytes(r *memory.Record) int {
	n := recordFrame + jsonBytes(r.Text) + len(r.Metadata) + jsonBytes(r.URI) + jsonBytes(r.Conversation)
	for _, tag := range r.Tags {
		n += jsonBytes(tag)
	}
	return n
}

// jsonBytes is how long a string is in JSON as encoding/json writes it.
func jsonBytes(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < ' ', c == '<', c == '>', c == '&':
			n += 5
		}
	}
	return n
}
