package rest

import (
	"io"
	"net/http"

	"mneme/memory"
)

// Readiness says whether a node serves reads, and why not.
type Readiness struct {
	Ready  bool           `json:"ready"`
	Checks []memory.Check `json:"checks"`
}

func (s *server) livez(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", mediaText)
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

func (s *server) readyz(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	verbose := q.boolean("verbose", false)
	if err := q.finish(); err != nil {
		return err
	}
	ready, checks := s.Health.Ready()
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
		if !verbose {
			return memory.Errorf(memory.CodeUnavailable, "this node does not serve reads%s", firstFailure(checks)).
				WithHint("/readyz?verbose says more")
		}
	}
	out := Readiness{Ready: ready, Checks: []memory.Check{}}
	if verbose {
		out.Checks = append(append(out.Checks, checks...), s.Health.Led(r.Context())...)
	}
	return s.writeJSON(w, status, out)
}

func firstFailure(checks []memory.Check) string {
	for _, c := range checks {
		if c.State == "fail" {
			return ": " + c.Name + ": " + c.Detail
		}
	}
	return ""
}
