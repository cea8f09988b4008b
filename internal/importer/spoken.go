package importer

import (
	"time"

	"mneme/memory"
)

// empty is why a message is left out that says nothing.
const empty = "a message without text"

// spoken is a message of a conversation with an assistant.
type spoken struct {
	format       string
	agent        string // who speaks where the role is assistant
	conversation string // its id there
	id           string // of the message there
	role         string // user or assistant
	text         string
	at           *time.Time
	line         int
	where        string
	fields       map[string]any
}

// speak queues a message. What the user said is the importing agent's. The message
// is the same whatever file it is read from, so that a newer export, or a transcript
// that was resumed, adds only what is new.
func speak(q *queue, opts *Options, m spoken) {
	c := memory.Capture{ID: sourceID(m.format, m.id), Text: m.text, Kind: memory.KindMessage, Role: clean(m.role, memory.MaxTagRunes),
		Conversation: conversation(m.format, m.conversation), OccurredAt: m.at}
	agent := ""
	if m.role == "assistant" {
		agent = m.agent
	}
	opts.speak(&c, agent)
	item := Item{Namespace: opts.Namespace, Capture: c, Line: m.line}
	item.describe(Provenance{From: m.format, Source: opts.Source, ID: m.id}, m.fields)
	q.add(item, m.where)
}
