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
	members [][]uint32        // documents by conversation, in its order
	byName  map[string]uint32 // conversations
	agents  []string
	byAgent map[string]uint32
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
	docs := c.members[n]
	if last := len(docs); last == 0 || c.order(docs[last-1], doc) < 0 {
		c.members[n] = append(docs, doc)
		return
	}
	at, _ := slices.BinarySearchFunc(docs, doc, c.order)
	c.members[n] = slices.Insert(docs, at, doc)
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
	c.members[n] = append(c.members[n], doc)
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
		n = uint32(len(c.members))
		c.members = append(c.members, nil)
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
	n := c.told[doc].conversation - 1
	if at, ok := slices.BinarySearchFunc(c.members[n], doc, c.order); ok {
		c.members[n] = slices.Delete(c.members[n], at, at+1)
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
		docs := c.members[c.byName[name]]
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
func (c *Conversations) placeLocked(docs []uint32, doc uint32) int {
	when := c.told[doc].occurred
	lo, hi := 0, len(docs)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if o := docs[mid]; c.told[o].occurred < when || c.told[o].occurred == when && o < doc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Neighbours puts the documents before and after doc in its conversation, the
// nearest first and only those in visible, up to len(before) and len(after), and
// returns how many there are of each.
func (c *Conversations) Neighbours(doc uint32, before, after []uint32, visible index.Set) (nb, na int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if int(doc) >= len(c.told) || c.told[doc].conversation == 0 {
		return 0, 0
	}
	docs := c.members[c.told[doc].conversation-1]
	at := c.placeLocked(docs, doc)
	if at == len(docs) || docs[at] != doc {
		return 0, 0
	}
	for i := at - 1; i >= max(0, at-len(before)-maxSkipped) && nb < len(before); i-- {
		if visible.Contains(docs[i]) {
			before[nb] = docs[i]
			nb++
		}
	}
	for i := at + 1; i < min(len(docs), at+1+len(after)+maxSkipped) && na < len(after); i++ {
		if visible.Contains(docs[i]) {
			after[na] = docs[i]
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
