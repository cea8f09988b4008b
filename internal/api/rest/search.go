package rest

import (
	"cmp"
	"net/http"

	"mneme/internal/api"
	"mneme/memory"
)

// searches answers searches of one namespace, and of several.
type searches struct {
	*server
	one     api.JSONDecoder[memory.SearchRequest]
	several api.JSONDecoder[memory.SearchNamespaces]
}

func newSearches(s *server) *searches {
	return &searches{s, api.NewJSONDecoder[memory.SearchRequest](), api.NewJSONDecoder[memory.SearchNamespaces]()}
}

func (s *searches) search(w http.ResponseWriter, r *http.Request) error {
	actor, body, err := s.read(r)
	if err != nil {
		return err
	}
	req, err := s.one.Decode(body)
	if err != nil {
		return err
	}
	req.As = cmp.Or(req.As, actor)
	if err := req.Validate(); err != nil {
		return err
	}
	return s.answer(w, r, req.Fields, func() (memory.SearchResponse, error) {
		return s.Reader.Search(r.Context(), searchAccess(r, &req), req)
	})
}

func (s *searches) searchNamespaces(w http.ResponseWriter, r *http.Request) error {
	actor, body, err := s.read(r)
	if err != nil {
		return err
	}
	req, err := s.several.Decode(body)
	if err != nil {
		return err
	}
	req.As = cmp.Or(req.As, actor)
	if err := req.Validate(); err != nil {
		return err
	}
	return s.answer(w, r, req.Fields, func() (memory.SearchResponse, error) {
		return s.Reader.SearchNamespaces(r.Context(), searchAccess(r, &req.SearchRequest), req)
	})
}

// read reads who searches, and the body.
func (s *searches) read(r *http.Request) (actor string, body []byte, err error) {
	q, err := s.parseQuery(r)
	if err != nil {
		return "", nil, err
	}
	actor = q.actor(r)
	if err := q.finish(); err != nil {
		return "", nil, err
	}
	body, err = readBody(r)
	return actor, body, err
}

// searchAccess is the access of a search; one of several namespaces names none in its path.
func searchAccess(r *http.Request, req *memory.SearchRequest) memory.Access {
	return memory.Access{Namespace: r.PathValue("ns"), As: req.As, AtLeast: req.AtLeast, Consistency: req.Consistency}
}

func (s *searches) answer(w http.ResponseWriter, r *http.Request, fields []string, search func() (memory.SearchResponse, error)) error {
	return answerRead(w, r, s.bulkheads.searches, func() (any, error) {
		resp, err := search()
		if err != nil {
			return nil, err
		}
		if resp.Results == nil {
			resp.Results = []memory.Hit{}
		}
		return resp.Shown(fields)
	})
}
