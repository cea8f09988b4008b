package query

import (
	"cmp"
	"slices"
	"sync"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/text"
)

// contextView is what stands around each memory: its conversation, who said
// it and when, one contextPart for each partition. It holds numbers and the
// agents' names, which the state keeps readable as well, and no text. Like the
// vectors it follows the applied commands and may be ahead of a reader's view:
// who reads asks for what his view holds and what lives in it.
type contextView struct {
	mu    sync.RWMutex
	parts map[uint32]*contextPart
}

// contextPart is one partition. About 20 bytes a document.
type contextPart struct {
	ns events.ID

	mu           sync.RWMutex
	conversation []uint32          // by DocID: 1 + its number; 0 = none
	agent        []uint32          // by DocID: 1 + agent; 0 = unknown document
	occurred     []int64           // by DocID: Unix nanoseconds
	members      [][]uint32        // documents by conversation, in its order
	byName       map[string]uint32 // conversations
	agents       []string
	byAgent      map[string]uint32
	byTerm       map[string][]uint32 // agents by the first term of their name
}

func newContextView() *contextView { return &contextView{parts: map[uint32]*contextPart{}} }

func newContextPart(ns events.ID) *contextPart {
	return &contextPart{ns: ns, byName: map[string]uint32{}, byAgent: map[string]uint32{}, byTerm: map[string][]uint32{}}
}

// get returns a partition's part; nil if nothing was ever written to it.
func (v *contextView) get(part uint32) *contextPart {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.parts[part]
}

func (v *contextView) put(part uint32, p *contextPart) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.parts[part] = p
}

// apply brings the view forward. It may be told twice of a document.
func (v *contextView) apply(a *projections.Applied) {
	for i := range a.Docs {
		d := &a.Docs[i]
		p := v.get(d.Partition)
		if p == nil {
			p = newContextPart(d.Namespace)
			v.put(d.Partition, p)
		}
		p.add(d.Doc, d.Conversation, d.Agent, d.OccurredAt)
	}
	for _, d := range a.Deaths {
		if p := v.get(d.Partition); p != nil {
			p.remove(d.Doc)
		}
	}
	for _, ns := range a.Dropped {
		v.mu.Lock()
		for id, p := range v.parts {
			if p.ns == ns {
				delete(v.parts, id)
			}
		}
		v.mu.Unlock()
	}
}

func (p *contextPart) add(doc uint32, conversation projections.AttrKey, agent string, occurred int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.describe(doc, agent, occurred) || conversation == "" {
		return
	}
	c := p.conversationOf([]byte(conversation.Value()))
	p.conversation[doc] = c + 1
	docs := p.members[c]
	if n := len(docs); n == 0 || p.order(docs[n-1], doc) < 0 {
		p.members[c] = append(docs, doc)
		return
	}
	at, _ := slices.BinarySearchFunc(docs, doc, p.order)
	p.members[c] = slices.Insert(docs, at, doc)
}

// describe notes who said a document and when; false if it is known.
func (p *contextPart) describe(doc uint32, agent string, occurred int64) bool {
	if n := int(doc) + 1 - len(p.agent); n > 0 {
		p.conversation, p.agent, p.occurred = append(p.conversation, make([]uint32, n)...), append(p.agent, make([]uint32, n)...), append(p.occurred, make([]int64, n)...)
	}
	if p.agent[doc] != 0 {
		return false
	}
	a, ok := p.byAgent[agent]
	if !ok {
		a = uint32(len(p.agents))
		p.agents = append(p.agents, agent)
		p.byAgent[agent] = a
		if terms := text.Terms(agent); len(terms) > 0 {
			p.byTerm[terms[0]] = append(p.byTerm[terms[0]], a)
		}
	}
	p.agent[doc], p.occurred[doc] = a+1, occurred
	return true
}

func (p *contextPart) conversationOf(name []byte) uint32 {
	c, ok := p.byName[string(name)]
	if !ok {
		c = uint32(len(p.members))
		p.members = append(p.members, nil)
		p.byName[string(name)] = c
	}
	return c
}

// order is that of a conversation: time, then DocID.
func (p *contextPart) order(a, b uint32) int {
	return cmp.Or(cmp.Compare(p.occurred[a], p.occurred[b]), cmp.Compare(a, b))
}

// remove takes a document out of its conversation: it is nobody's neighbour
// any more.
func (p *contextPart) remove(doc uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if int(doc) >= len(p.conversation) || p.conversation[doc] == 0 {
		return
	}
	docs := p.members[p.conversation[doc]-1]
	if at, ok := slices.BinarySearchFunc(docs, doc, p.order); ok {
		p.members[p.conversation[doc]-1] = slices.Delete(docs, at, at+1)
	}
	p.conversation[doc] = 0
}

// maxSkipped bounds the walk past documents that a reader does not see.
const maxSkipped = 32

// around puts the documents before and after doc in its conversation, the
// nearest first and those only that visible lets through, up to len(before)
// and len(after), and returns how many there are of each.
func (p *contextPart) around(doc uint32, before, after []uint32, visible func(uint32) bool) (nb, na int) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if int(doc) >= len(p.conversation) || p.conversation[doc] == 0 {
		return 0, 0
	}
	docs := p.members[p.conversation[doc]-1]
	at, ok := slices.BinarySearchFunc(docs, doc, p.order)
	if !ok {
		return 0, 0
	}
	for i := at - 1; i >= max(0, at-len(before)-maxSkipped) && nb < len(before); i-- {
		if visible(docs[i]) {
			before[nb] = docs[i]
			nb++
		}
	}
	for i := at + 1; i < min(len(docs), at+1+len(after)+maxSkipped) && na < len(after); i++ {
		if visible(docs[i]) {
			after[na] = docs[i]
			na++
		}
	}
	return nb, na
}

// of describes a document: 1 + its conversation and 1 + its agent, 0 for none,
// and when it occurred.
func (p *contextPart) of(doc uint32) (conversation, agent uint32, occurred int64) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if int(doc) >= len(p.agent) {
		return 0, 0, 0
	}
	return p.conversation[doc], p.agent[doc], p.occurred[doc]
}
