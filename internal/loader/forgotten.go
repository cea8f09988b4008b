package loader

import (
	"context"
	"fmt"
	"slices"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// forgotten is what is no longer in a namespace because it was forgotten. What a person or an
// agent forgot stays so; what an import took away itself (--prune, --take-back) comes back.
type forgotten struct {
	records map[string]*past
	ids     map[string]*past   // of imported ones, by whose id it is
	groups  map[string][]*past // of imported ones, by conversation
	copies  map[string]*past   // of those that exports brought, by key

	living map[string]bool // ids of the imported ones that are there; nil before anybody asks
}

// past is a forgotten record as its last version was.
type past struct {
	uri     string
	source  source
	own     string // as in part
	at      int    // when it was forgotten, in the order of the audit
	taken   bool   // by an import
	claimed bool   // by a section of the file that is being read
}

// idOf is a client's id, which is the agent's.
func idOf(agent, id string) string { return agent + " " + id }

// A forget that was carried out, as the audit names it.
const forgettingType, forgettingOutcome = "memory.forgotten", "forgotten"

// past reads what was forgotten in a namespace: the audit names the records, and their
// history still says what they were. Of what was erased there is nothing to know.
func (k *known) past(ctx context.Context, ns string) (*forgotten, error) {
	if f := k.pasts[ns]; f != nil {
		return f, nil
	}
	f := &forgotten{records: map[string]*past{}, ids: map[string]*past{}, groups: map[string][]*past{}, copies: map[string]*past{}}
	as := client.ReadOptions{As: k.load.opt.Agent}
	opts := client.AuditOptions{ReadOptions: as, AuditRequest: memory.AuditRequest{Type: forgettingType, Limit: memory.MaxLimit}}
	for {
		page, err := k.load.node.Audit(ctx, ns, opts)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Rows {
			if row.Outcome != forgettingOutcome || f.records[row.RecordID] != nil {
				continue
			}
			h, err := k.load.node.History(ctx, ns, row.RecordID, as)
			if err != nil && memory.CodeOf(err) != memory.CodeNotFound {
				return nil, err
			}
			f.add(row.RecordID, h.Versions)
		}
		if page.Cursor == "" || page.Cursor == opts.Cursor {
			k.pasts[ns] = f
			return f, nil
		}
		opts.Cursor = page.Cursor
	}
}

// forgotMany reports whether to read what was forgotten in a namespace takes more requests than are made for a few rows.
func (k *known) forgotMany(ctx context.Context, ns string) (bool, error) {
	opts := client.AuditOptions{ReadOptions: client.ReadOptions{As: k.load.opt.Agent}, AuditRequest: memory.AuditRequest{Type: forgettingType, Limit: memory.MaxLimit}}
	for rows := 0; ; {
		page, err := k.load.node.Audit(ctx, ns, opts)
		if rows += len(page.Rows); err != nil || rows > maxLooked {
			return err == nil, err
		}
		if page.Cursor == "" || page.Cursor == opts.Cursor {
			return false, nil
		}
		opts.Cursor = page.Cursor
	}
}

// add adds the record that was forgotten after all others, with its versions, of which there are
// none if nobody may read them.
func (f *forgotten) add(recordID string, versions []memory.Record) {
	was := &past{at: len(f.records)}
	f.records[recordID] = was
	if len(versions) == 0 {
		return
	}
	last := versions[len(versions)-1]
	if last.Origin != memory.OriginImport {
		return
	}
	p := importer.OriginOf(last.Metadata)
	was.uri, was.own, was.taken = memory.URIPath(last.URI), p.Own(), p.Taken
	if first := versions[0]; first.ID != "" { // the id is of who captured it
		f.ids[idOf(first.Agent, first.ID)] = was
	}
	if p.Key != "" && p.Record != "" {
		f.copies[p.Key] = was
	}
	if p.Hash != "" {
		was.source = source{last.Namespace, p.From, p.Source, ""}
		others := slices.DeleteFunc(f.groups[last.Conversation], func(o *past) bool {
			return o.own == was.own && o.uri == was.uri // it was there before, and came back as this one
		})
		f.groups[last.Conversation] = append(others, was)
	}
}

// section finds the forgotten memory that a section of a file was, nil if it was none:
// it says the same. Of several it is the one at the same place, and then the one that was
// forgotten last.
func (f *forgotten) section(item importer.Item) *past {
	var found *past
	for _, was := range f.groups[item.Group] {
		if was.own != item.Provenance.Own() || was.claimed {
			continue
		}
		here, there := was.uri == item.Capture.URI, found != nil && found.uri == item.Capture.URI
		if found == nil || here && !there || here == there && was.at > found.at {
			found = was
		}
	}
	return found
}

// last follows an id to the memory that was forgotten last of those that came under it: each came
// back under another one. next is the id under which one comes back now. was is what is known of it, or nil.
func (f *forgotten) last(agent, id string, was *past) (last *past, next string) {
	if p := f.ids[idOf(agent, id)]; p != nil {
		was = p
	}
	for n := 2; ; n++ {
		next = againID(id, n)
		p := f.ids[idOf(agent, next)]
		if p == nil {
			return was, next
		}
		was = p
	}
}

// stillForgotten settles an exported memory whose record, or that of which it is a copy, was forgotten at home.
func (k *known) stillForgotten(ctx context.Context, f *forgotten, item importer.Item, recordID string) (bool, error) {
	was, next := f.last(item.Capture.Agent, item.Capture.ID, f.records[recordID])
	if was.taken || k.load.opt.Again {
		return false, nil
	}
	living, err := k.living(ctx, f, item.Namespace)
	if err != nil || living[idOf(item.Capture.Agent, item.Capture.ID)] || living[idOf(item.Capture.Agent, next)] {
		return false, err // it was brought back
	}
	k.load.settle(item).Forgotten++
	return true, nil
}

// living are the ids of the imported memories that are there.
func (k *known) living(ctx context.Context, f *forgotten, ns string) (map[string]bool, error) {
	if f.living != nil {
		return f.living, nil
	}
	living := map[string]bool{}
	if err := Imported(ctx, k.load.node, ns, k.load.opt.Agent, memory.Filter{}, func(rec memory.Record, _ importer.Provenance) {
		living[idOf(rec.Agent, rec.ID)] = true
	}); err != nil {
		return nil, err
	}
	f.living = living
	return living, nil
}

// again settles an item whose id is that of a forgotten record: it is sent with
// another id where it may come back, or came back before.
func (s *sender) again(ctx context.Context, counts *Counts, item importer.Item, f *forgotten, was *past) error {
	delete(s.moved, item.RecordID)
	agent := item.Capture.Agent
	was, next := f.last(agent, item.Capture.ID, was)
	back := was.taken || s.load.opt.Again
	if !back {
		living, err := s.load.known.living(ctx, f, item.Namespace)
		if err != nil {
			return err
		}
		back = living[idOf(agent, next)]
	}
	if !back {
		counts.Forgotten++
		return nil
	}
	counts.Found-- // it is counted when it is sent
	s.done--
	item.Capture.ID = next
	s.back = append(s.back, item)
	return nil
}

// againID is the id under which something is there for the nth time.
func againID(id string, n int) string {
	suffix := fmt.Sprintf("/again.%d", n)
	if len(id)+len(suffix) > memory.MaxClientID {
		id = "id/" + importer.SumOf([]byte(id))
	}
	return id + suffix
}

// bring sends what comes back.
func (s *sender) bring(ctx context.Context) error {
	for len(s.back) > 0 {
		items := s.back
		s.back = nil
		for _, item := range items {
			if err := s.push(ctx, item); err != nil {
				return err
			}
		}
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}
