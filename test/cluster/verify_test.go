package cluster

import (
	"context"
	"time"

	"mneme/client"
	"mneme/memory"
)

// checkFor bounds how long porcupine looks at one register.
const checkFor = 20 * time.Second

// verify compares what the clients of a load were told with what the nodes hold, once the
// load has ended and the faults are over. It returns how many registers had too many open
// ends to decide.
func (l *load) verify(ctx context.Context, at *process) (undecided int) {
	t := l.tm.t
	t.Helper()
	l.tm.same(ctx)
	records := l.records(ctx, at)
	byID := map[string]memory.Record{}
	for _, rec := range records {
		key := rec.Agent + "/" + rec.ID
		if twice, ok := byID[key]; ok && rec.ID != "" {
			t.Errorf("%s is there twice: %s at %s and %s at %s", key, twice.RecordID, twice.Position, rec.RecordID, rec.Position)
		}
		byID[key] = rec
	}
	for _, c := range l.captures {
		rec, there := byID[c.agent+"/"+c.id]
		switch {
		case c.outcome == refused && there:
			t.Errorf("%s of %s was refused, and is there at %s", c.id, c.agent, rec.Position)
		case c.outcome == done && (!there || rec.RecordID != c.result.RecordID || rec.Position != c.result.Position || rec.Text != c.text):
			t.Errorf("%s of %s was acknowledged as %s at %s and is %s at %s: %q", c.id, c.agent, c.result.RecordID, c.result.Position, rec.RecordID, rec.Position, rec.Text)
		case there && rec.Text != c.text:
			t.Errorf("%s of %s says %q, it was sent as %q", c.id, c.agent, rec.Text, c.text)
		}
		delete(byID, c.agent+"/"+c.id)
	}
	for key := range byID {
		if l.registerOf(byID[key].RecordID) == nil {
			t.Errorf("%s is there, and nobody sent it", key)
		}
	}
	l.verifyAudit(ctx, at, records)
	l.verifyRegisters(ctx, at)
	undecided, err := l.checkRegisters(checkFor)
	if err != nil {
		t.Error(err)
	}
	return undecided
}

// again asks until the node answers. One that meets what an earlier fault damaged, in rows
// that nobody had read since, refuses the request that met it and starts again to build its
// state. What it then says is what counts.
func again[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		got, err := ask()
		if code := memory.CodeOf(err); code != memory.CodeInternal && code != memory.CodeUnavailable || ctx.Err() != nil {
			return got, err
		}
		time.Sleep(pace)
	}
}

func (l *load) registerOf(record string) *register {
	for _, r := range l.registers {
		if r.id == record {
			return r
		}
	}
	return nil
}

// records are all living ones.
func (l *load) records(ctx context.Context, at *process) (all []memory.Record) {
	l.tm.t.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		list, err := again(ctx, func() (memory.RecordList, error) {
			return at.client.List(ctx, l.ns, client.ListOptions{ListRequest: memory.ListRequest{Limit: 200, Cursor: cursor}})
		})
		if err != nil {
			l.tm.t.Fatalf("list the records at %s: %v", at.id, err)
		}
		all, cursor = append(all, list.Records...), list.Cursor
	}
	return all
}

// verifyAudit finds each capture in the audit once, those of one agent in its order.
func (l *load) verifyAudit(ctx context.Context, at *process, records []memory.Record) {
	t := l.tm.t
	t.Helper()
	row, n := map[string]int{}, 0
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := again(ctx, func() (memory.AuditPage, error) {
			return at.client.Audit(ctx, l.ns, client.AuditOptions{AuditRequest: memory.AuditRequest{Limit: 200, Cursor: cursor}})
		})
		if err != nil {
			t.Fatalf("audit at %s: %v", at.id, err)
		}
		for _, r := range page.Rows {
			if n++; r.RecordID == "" || r.Outcome != "created" || l.registerOf(r.RecordID) != nil {
				continue
			}
			if row[r.RecordID] != 0 {
				t.Errorf("the audit has the record %s twice", r.RecordID)
			}
			row[r.RecordID] = n
		}
		cursor = page.Cursor
	}
	for _, rec := range records {
		if row[rec.RecordID] == 0 && l.registerOf(rec.RecordID) == nil {
			t.Errorf("the audit lacks the record %s of %s", rec.RecordID, rec.Agent)
		}
	}
	last := map[string]captured{}
	for _, c := range l.captures {
		if c.outcome != done {
			continue
		}
		if before, ok := last[c.agent]; ok && row[before.result.RecordID] >= row[c.result.RecordID] {
			t.Errorf("%s was acknowledged before %s was sent, and is behind it in the audit", before.id, c.id)
		}
		last[c.agent] = c
	}
}

// verifyRegisters compares what was read without a promise of freshness with each
// register's versions.
func (l *load) verifyRegisters(ctx context.Context, at *process) {
	t := l.tm.t
	t.Helper()
	for _, r := range l.registers {
		for seen, node := range r.seen {
			rec, err := again(ctx, func() (memory.Record, error) {
				return at.client.Get(ctx, l.ns, r.id, client.GetOptions{Version: seen.version})
			})
			if memory.CodeOf(err) == memory.CodeNotFound {
				break // it was forgotten, with its versions
			}
			if err != nil || rec.Text != seen.value {
				t.Errorf("%s read version %d of %s as %q, it is %q: %v", node, seen.version, r.id, seen.value, rec.Text, err)
			}
		}
	}
}

// verifyLogs verifies the log as every node reads it, and compares the state of one with
// what the log folds to.
func (tm *team) verifyLogs(ctx context.Context, rebuilt *process) {
	tm.t.Helper()
	for _, p := range tm.nodes {
		report, err := again(ctx, func() (memory.VerifyReport, error) { return p.verifies(ctx) })
		if err != nil {
			tm.t.Errorf("%s verifies its log: %v", p.id, err)
			continue
		}
		for _, s := range report.Shards {
			if !s.OK {
				tm.t.Errorf("%s verifies its log: %v", p.id, s.Problems)
			}
		}
	}
	tm.same(ctx)
	before, err := again(ctx, func() (memory.Status, error) { return rebuilt.client.Status(ctx) })
	must(tm.t, err)
	report, err := again(ctx, func() (memory.RebuildReport, error) {
		operator, err := rebuilt.operator(ctx)
		if err != nil {
			return memory.RebuildReport{}, err
		}
		defer operator.Close()
		return operator.Rebuild(ctx, nil)
	})
	if err != nil || len(report.Shards) != len(before.Shards) {
		tm.t.Errorf("%s rebuilds its state: %+v %v", rebuilt.id, report, err)
		return
	}
	for i, s := range report.Shards {
		if s.Position == before.Shards[i].Position && s.StateHash != before.Shards[i].StateHash {
			tm.t.Errorf("%s rebuilt its state of shard %d from the log to %s, it was %s", rebuilt.id, i, s.StateHash, before.Shards[i].StateHash)
		}
	}
	tm.same(ctx) // where another node has begun to lead meanwhile
}
