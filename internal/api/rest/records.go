package rest

import (
	"net/http"
	"strconv"

	"mneme/memory"
)

func (s *server) listRecords(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	acc := q.access(r)
	req := memory.ListRequest{Cursor: q.str("cursor"), Limit: q.number("limit", 0, 1, memory.MaxLimit), Filter: memory.Filter{
		Tags: q.list("tag"), Agents: q.list("agent"), Conversation: q.str("conversation"),
		Scope: oneOf(q, "scope", memory.ScopeTeam, memory.ScopeAgent),
		Since: q.time("since"), Until: q.time("until"),
	}, Purpose: oneOf(q, "purpose", memory.PurposeInject), Fit: q.fit()}
	for _, k := range q.list("kind") {
		if !memory.ValidKind(memory.Kind(k)) {
			q.fail("kind %.40q is unknown", k)
		}
		req.Filter.Kinds = append(req.Filter.Kinds, memory.Kind(k))
	}
	uri := q.str("uri")
	if uri != "" && req.Purpose != "" { // which would go past the audit
		q.fail("uri and purpose do not go together: search, or list without a uri")
	}
	if err := q.finish(); err != nil {
		return err
	}
	if err := req.Validate(); err != nil {
		return err
	}
	if uri != "" {
		return s.recordByURI(w, r, acc, uri, &req)
	}
	return answerRead(w, r, s.bulkheads.pages, func() (any, error) {
		list, err := s.Reader.List(r.Context(), acc, req)
		if err != nil {
			return nil, err
		}
		return list.Shown(req.Fields)
	})
}

// recordByURI answers with a list of the one living record at a uri. Its text is whole
// unless the request says otherwise.
func (s *server) recordByURI(w http.ResponseWriter, r *http.Request, acc memory.Access, uri string, req *memory.ListRequest) error {
	if err := memory.CheckURIPath(uri); err != nil {
		return err
	}
	full, bad := memory.FullURI(acc.Namespace, uri)
	if bad != nil {
		return bad
	}
	return answerRead(w, r, s.bulkheads.gets, func() (any, error) {
		rec, err := s.Reader.Get(r.Context(), acc, full, 0)
		if err != nil {
			return nil, err
		}
		if req.MaxText != nil {
			rec.Text, rec.Truncated = req.Text(rec.Text)
		}
		return memory.RecordList{Records: []memory.Record{rec}, Position: rec.Position}.Shown(req.Fields)
	})
}

func (s *server) getRecord(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	acc, version := q.access(r), q.number("version", 0, 1, 1<<30)
	if err := q.finish(); err != nil {
		return err
	}
	return answerRead(w, r, s.bulkheads.gets, func() (memory.Record, error) {
		rec, err := s.Reader.Get(r.Context(), acc, r.PathValue("id"), version)
		w.Header().Set("Etag", strconv.Quote(strconv.Itoa(rec.Version)))
		return rec, err
	})
}

func (s *server) history(w http.ResponseWriter, r *http.Request) error {
	acc, err := s.readAccess(r)
	if err != nil {
		return err
	}
	return answerRead(w, r, s.bulkheads.pages, func() (memory.History, error) {
		return s.Reader.History(r.Context(), acc, r.PathValue("id"))
	})
}

func (s *server) timeline(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	acc := q.access(r)
	before := q.number("before", memory.DefaultSurroundings, 0, memory.MaxLimit)
	after := q.number("after", memory.DefaultSurroundings, 0, memory.MaxLimit)
	req := memory.TimelineRequest{ID: r.PathValue("id"), Before: &before, After: &after, Fit: q.fit()}
	if err := q.finish(); err != nil {
		return err
	}
	if err := req.Validate(); err != nil {
		return err
	}
	return answerRead(w, r, s.bulkheads.pages, func() (any, error) {
		tl, err := s.Reader.Timeline(r.Context(), acc, req)
		if err != nil {
			return nil, err
		}
		return tl.Shown(req.Fields)
	})
}

// change is what a revision and a forget have in common.
type change struct {
	as      string
	ifMatch int
	key     string
}

func (s *server) parseChange(r *http.Request) (change, error) {
	q, err := s.parseQuery(r)
	if err != nil {
		return change{}, err
	}
	c := change{as: q.actor(r)}
	if err := q.finish(); err != nil {
		return change{}, err
	}
	if c.ifMatch, err = ifMatch(r); err != nil {
		return change{}, err
	}
	c.key, err = idempotencyKey(r)
	return c, err
}

func (s *server) reviseRecord(w http.ResponseWriter, r *http.Request) error {
	c, err := s.parseChange(r)
	if err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	rev, err := s.revisions.Decode(body)
	if err != nil {
		return err
	}
	resp, err := s.Writer.Revise(r.Context(), r.PathValue("ns"), c.as, r.PathValue("id"), rev, c.ifMatch, c.key)
	if err != nil {
		return err
	}
	w.Header().Set("Etag", strconv.Quote(strconv.Itoa(resp.Version)))
	return s.writeJSON(w, http.StatusOK, resp)
}

func (s *server) forgetRecord(w http.ResponseWriter, r *http.Request) error {
	c, err := s.parseChange(r)
	if err != nil {
		return err
	}
	resp, err := s.Writer.Forget(r.Context(), r.PathValue("ns"), c.as, r.PathValue("id"), c.ifMatch)
	if err != nil {
		return err
	}
	return s.writeJSON(w, http.StatusOK, resp)
}
