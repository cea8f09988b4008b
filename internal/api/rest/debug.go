package rest

import (
	"net/http"
	"slices"

	"mneme/memory"
)

// profiles are the profiles of a process.
var profiles = []any{"goroutine", "heap", "allocs", "block", "mutex", "threadcreate", "cpu", "trace"}

// Bounds of a profile that looks for a while, in seconds.
const (
	defaultProfile = 10
	maxProfile     = 300
)

func reload(s *server) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		return answerWith(s, w, r, func() (memory.ReloadReport, error) { return s.Admin.Reload(r.Context()) })
	}
}

func debugBundle(s *server) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := s.parseQuery(r); err != nil {
			return err
		}
		return s.Admin.DebugBundle(r.Context(), &byteStream{w: w})
	}
}

func debugProfile(s *server) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := s.parseQuery(r)
		if err != nil {
			return err
		}
		seconds := q.number("seconds", defaultProfile, 1, maxProfile)
		if err := q.finish(); err != nil {
			return err
		}
		kind := r.PathValue("kind")
		if !slices.Contains(profiles, any(kind)) {
			return memory.Errorf(memory.CodeNotFound, "there is no profile %.40q", kind).WithHint("there are %v", profiles)
		}
		return s.Admin.Profile(r.Context(), &byteStream{w: w}, kind, seconds)
	}
}
