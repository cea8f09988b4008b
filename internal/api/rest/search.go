package rest

import (
	"net/http"

	"mneme/memory"
)

func (s *server) search(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	actor := q.actor(r)
	if err := q.finish(); err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	req, err := s.searches.Decode(body)
	if err != nil {
		return err
	}
	if req.As == "" {
		req.As = actor
	}
	if err := req.Validate(); err != nil {
		return err
	}
	acc := memory.Access{Namespace: r.PathValue("ns"), As: req.As, AtLeast: req.AtLeast, Consistency: req.Consistency}
	return answerRead(w, r, s.bulkheads.searches, func() (memory.SearchResponse, error) {
		resp, err := s.Reader.Search(r.Context(), acc, req)
		if resp.Results == nil {
			resp.Results = []memory.Hit{}
		}
		return resp, err
	})
}
