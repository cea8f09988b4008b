package rest

import (
	"net/http"

	"mneme/memory"
)

func (s *server) audit(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	acc := q.access(r)
	req := memory.AuditRequest{
		Cursor: q.str("cursor"), From: q.str("from"), Limit: q.number("limit", 0, 1, memory.MaxLimit),
		Actor: q.str("actor"), Type: q.str("type"), Since: q.time("since"), Until: q.time("until"),
	}
	if err := q.finish(); err != nil {
		return err
	}
	return answerRead(w, r, s.bulkheads.pages, func() (memory.AuditPage, error) { return s.Reader.Audit(r.Context(), acc, req) })
}

func auditedReads(s *server) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := s.parseQuery(r)
		if err != nil {
			return err
		}
		acc := q.access(r)
		req := memory.AuditedReadsRequest{
			Cursor: q.str("cursor"), Limit: q.number("limit", 0, 1, memory.MaxLimit),
			Agent: q.str("agent"), Record: q.str("record"), Since: q.time("since"), Until: q.time("until"),
		}
		if err := q.finish(); err != nil {
			return err
		}
		return answerRead(w, r, s.bulkheads.pages, func() (memory.AuditedReadPage, error) { return s.Reader.AuditedReads(r.Context(), acc, req) })
	}
}

func (s *server) export(w http.ResponseWriter, r *http.Request) error {
	acc, err := s.readAccess(r)
	if err != nil {
		return err
	}
	return exported(s, w, r, func(send func(memory.ExportLine) error) error { return s.Reader.Export(r.Context(), acc, send) })
}

// exported answers with everything of a kind, one line each.
func exported[L any](s *server, w http.ResponseWriter, r *http.Request, export func(send func(L) error) error) error {
	leave, err := s.bulkheads.exports.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	l := s.newLines(w)
	err = export(func(line L) error { return l.send(line, false) })
	if err != nil { // before the first line a problem, after it a line with it and a broken stream
		p := memory.ProblemOf(asError(err))
		if l.hasBegun() {
			_ = l.send(memory.ProgressLine[struct{}]{Error: &p}, true)
		}
		l.stop()
		return err
	}
	l.close()
	return nil
}
