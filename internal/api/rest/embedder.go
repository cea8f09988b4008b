package rest

import (
	"net/http"

	"mneme/memory"
)

func (s *server) getEmbedder(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.parseQuery(r); err != nil {
		return err
	}
	return answerRead(w, r, s.bulkheads.gets, func() (memory.EmbedderStatus, error) { return s.Reader.Embedder(r.Context(), r.PathValue("ns")) })
}

// switchEmbedder answers 202 where something was begun that takes its time.
func (s *server) switchEmbedder(w http.ResponseWriter, r *http.Request) error {
	body, err := s.plainBody(r)
	if err != nil {
		return err
	}
	req, err := s.switches.Decode(body)
	if err != nil {
		return err
	}
	if req.Provider == "" {
		return memory.Errorf(memory.CodeInvalid, "provider is missing")
	}
	st, began, err := s.Writer.SwitchEmbedder(r.Context(), r.PathValue("ns"), req)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if began {
		status = http.StatusAccepted
	}
	return s.writeJSON(w, status, st)
}

func (s *server) cancelSwitch(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.parseQuery(r); err != nil {
		return err
	}
	st, err := s.Writer.CancelSwitch(r.Context(), r.PathValue("ns"))
	if err != nil {
		return err
	}
	return s.writeJSON(w, http.StatusOK, st)
}
