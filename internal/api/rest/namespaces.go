package rest

import (
	"net/http"
	"net/url"

	"mneme/memory"
)

// Deleted answers the deletion of a namespace.
type Deleted struct {
	Name     string `json:"name"`
	Position string `json:"position"`
}

func (s *server) createNamespace(w http.ResponseWriter, r *http.Request) error {
	body, err := s.plainBody(r)
	if err != nil {
		return err
	}
	req, err := s.namespaces.Decode(body)
	if err != nil {
		return err
	}
	ns, err := s.Writer.CreateNamespace(r.Context(), req)
	if err != nil {
		return err
	}
	if req.DryRun {
		return s.writeJSON(w, http.StatusOK, ns)
	}
	w.Header().Set("Location", "/v1/namespaces/"+url.PathEscape(ns.Name))
	return s.writeJSON(w, http.StatusCreated, ns)
}

func (s *server) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	req := memory.NamespacesRequest{Cursor: q.str("cursor"), Limit: q.number("limit", 0, 1, memory.MaxLimit)}
	if err := q.finish(); err != nil {
		return err
	}
	return answerRead(w, r, s.bulkheads.pages, func() (memory.NamespaceList, error) { return s.Reader.Namespaces(r.Context(), req) })
}

func (s *server) getNamespace(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.parseQuery(r); err != nil {
		return err
	}
	return answerRead(w, r, s.bulkheads.gets, func() (memory.Namespace, error) { return s.Reader.Namespace(r.Context(), r.PathValue("ns")) })
}

func (s *server) patchNamespace(w http.ResponseWriter, r *http.Request) error {
	body, err := s.plainBody(r)
	if err != nil {
		return err
	}
	patch, err := s.patches.Decode(body)
	if err != nil {
		return err
	}
	ns, err := s.Writer.ChangeNamespace(r.Context(), r.PathValue("ns"), patch)
	if err != nil {
		return err
	}
	return s.writeJSON(w, http.StatusOK, ns)
}

func (s *server) deleteNamespace(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.parseQuery(r); err != nil {
		return err
	}
	name := r.PathValue("ns")
	position, err := s.Writer.DeleteNamespace(r.Context(), name)
	if err != nil {
		return err
	}
	return s.writeJSON(w, http.StatusOK, Deleted{Name: name, Position: position})
}

// plainBody reads the body of a route that takes no parameters.
func (s *server) plainBody(r *http.Request) ([]byte, error) {
	if _, err := s.parseQuery(r); err != nil {
		return nil, err
	}
	return readBody(r)
}
