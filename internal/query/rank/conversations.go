package rank

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	index "mneme/internal/index/text"
)

// Conversations is the order of messages in one partition: the conversation of
// each document, who said it and when. It holds numbers and names and no text,
// about 20 bytes a document. It may be ahead of a reader's view, so a reader says
// which documents it sees. It is safe for concurrent use.
type Conversations struct {
	mu      sync.RWMutex
	told    []told            // by DocID
	all     []members         // by number
	byName  map[string]uint32 // numbers
	agents  []string
	byAgent map[string]uint32
}

// members are the documents of a conversation, in its order.
type members struct {
	docs  []uint32
	mixed bool // their DocIDs do not all ascend
}

// told is what is known of a document. It lies together, as a search looks at hundreds that are
// scattered over all there are.
type told struct {
	conversation uint32 // 1 + its number; 0 = none
	agent        uint32 // 1 + agent; 0 = unknown document
	occurred     int64  // Unix nanoseconds
}

// NewConversations returns an empty order with room for docs documents.
func NewConversations(docs int) *Conversations {
	return &Conversations{told: make([]told, docs), byName: map[string]uint32{}, byAgent: map[string]uint32{}}
}

// Add puts a document in its place; conversation may be "". A document that is
// known already stays as it is.
func (c *Conversations) Add(doc uint32, conversation, agent string, occurred int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.describeLocked(doc, agent, occurred) || conversation == "" {
		return
	}
	n := c.numberLocked([]byte(conversation))
	c.told[doc].conversation = n + 1
	in := &c.all[n]
	at := len(in.docs)
	if at > 0 && c.order(in.docs[at-1], doc) > 0 {
		at, _ = slices.BinarySearchFunc(in.docs, doc, c.order)
	}
	in.insert(at, doc)
}

// insert puts a document at a place.
func (in *members) insert(at int, doc uint32) {
	in.mixed = in.mixed || at > 0 && in.docs[at-1] > doc || at < len(in.docs) && in.docs[at] < doc
	in.docs = slices.Insert(in.docs, at, doc)
}

// Describe notes who said a document and when, without a conversation.
func (c *Conversations) Describe(doc uint32, agent string, occurred int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.describeLocked(doc, agent, occurred)
}

// Append puts a described document at the end of a conversation.
func (c *Conversations) Append(conversation []byte, doc uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.numberLocked(conversation)
	c.told[doc].conversation = n + 1
	in := &c.all[n]
	in.insert(len(in.docs), doc)
}

// describeLocked reports false for a document that is known.
func (c *Conversations) describeLocked(doc uint32, agent string, occurred int64) bool {
	if n := int(doc) + 1 - len(c.told); n > 0 {
		c.told = append(c.told, make([]told, n)...)
	}
	if c.told[doc].agent != 0 {
		return false
	}
	a, ok := c.byAgent[agent]
	if !ok {
		a = uint32(len(c.agents))
		c.agents = append(c.agents, agent)
		c.byAgent[agent] = a
	}
	c.told[doc].agent, c.told[doc].occurred = a+1, occurred
	return true
}

func (c *Conversations) numberLocked(name []byte) uint32 {
	n, ok := c.byName[string(name)]
	if !ok {
		n = uint32(len(c.all))
		c.all = append(c.all, members{})
		c.byName[string(name)] = n
	}
	return n
}

// order is that of a conversation: time, then DocID.
func (c *Conversations) order(a, b uint32) int {
	return cmp.Or(cmp.Compare(c.told[a].occurred, c.told[b].occurred), cmp.Compare(a, b))
}

// Remove takes a document out of its conversation: it is no longer anybody's
// neighbour.
func (c *Conversations) Remove(doc uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int(doc) >= len(c.told) || c.told[doc].conversation == 0 {
		return
	}
	in := &c.all[c.told[doc].conversation-1]
	if at, ok := slices.BinarySearchFunc(in.docs, doc, c.order); ok {
		in.docs = slices.Delete(in.docs, at, at+1)
	}
	c.told[doc].conversation = 0
}

// String prints the order: a line for each conversation, with the number and agent
// of each document and when it occurred.
func (c *Conversations) String() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		docs := c.all[c.byName[name]].docs
		if len(docs) == 0 {
			continue
		}
		fmt.Fprintf(&out, "%s:", name)
		for _, doc := range docs {
			fmt.Fprintf(&out, " %d %s@%d", doc, c.agents[c.told[doc].agent-1], c.told[doc].occurred)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// maxSkipped bounds the walk past documents that a reader does not see.
const maxSkipped = 32

// placeLocked is where a document of a conversation stands in it, or would stand. A search
// asks this some five hundred times.
func (c *Conversations) placeLocked(in *members, doc uint32) int {
	if !in.mixed {
		at, _ := slices.BinarySearch(in.docs, doc)
		return at
	}
	at, _ := slices.BinarySearchFunc(in.docs, doc, c.order)
	return at
}

// reach is how far the neighbours of a document stand from it at most, see Neighbours.
const reach = len(neighbourWeights)

// Surroundings finds what stands around documents. Its memory is used again; it belongs to one
// goroutine at a time.
type Surroundings struct {
	in            []uint32 // of each document: 1 + its conversation, 0 = none
	middle        []uint32 // a document in the middle of it
	before, after [reach]uint32
}

// Of visits documents, with those before and after each in its conversation, the
// nearest first and only those in visible, up to three of each. What it gives is good until visit
// returns, which must not call c.
//
// A search asks for hundreds that are scattered over all there are. So it goes through them once for each
// look at memory, where the processor can have many on their way, and not once for each document.
func (s *Surroundings) Of(c *Conversations, docs []uint32, visible index.Set, visit func(i int, before, after []uint32)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s.in, s.middle = s.in[:0], s.middle[:0]
	for _, doc := range docs {
		n := uint32(0)
		if int(doc) < len(c.told) {
			n = c.told[doc].conversation
		}
		s.in = append(s.in, n)
	}
	for _, n := range s.in {
		middle := uint32(0)
		if n > 0 {
			if docs := c.all[n-1].docs; len(docs) > 0 {
				middle = docs[len(docs)/2]
			}
		}
		s.middle = append(s.middle, middle) // what is not used is not read
	}
	for i, n := range s.in {
		nb, na := 0, 0
		if n > 0 {
			nb, na = s.find(c, &c.all[n-1], docs[i], visible)
		}
		visit(i, s.before[:nb], s.after[:na])
	}
}

// find fills in what stands before and after a document, and returns how many there are of each.
func (s *Surroundings) find(c *Conversations, in *members, doc uint32, visible index.Set) (nb, na int) {
	docs, at := in.docs, c.placeLocked(in, doc)
	if at == len(docs) || docs[at] != doc {
		return 0, 0
	}
	for i := at - 1; i >= max(0, at-reach-maxSkipped) && nb < reach; i-- {
		if visible.Contains(docs[i]) {
			s.before[nb] = docs[i]
			nb++
		}
	}
	for i := at + 1; i < min(len(docs), at+1+reach+maxSkipped) && na < reach; i++ {
		if visible.Contains(docs[i]) {
			s.after[na] = docs[i]
			na++
		}
	}
	return nb, na
}

// of gives 1 + the agent of a document, 0 for none, and when it occurred. A nil receiver
// knows no document.
func (c *Conversations) of(doc uint32) (agent uint32, occurred int64) {
	if c == nil {
		return 0, 0
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if int(doc) >= len(c.told) {
		return 0, 0
	}
	d := &c.told[doc]
	return d.agent, d.occurred
}
