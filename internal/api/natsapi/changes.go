package natsapi

import (
	"cmp"
	"context"

	"mneme/internal/api"
	"mneme/memory"
)

// change names the record that a service changes, and who does.
type change struct {
	ID string `json:"id"`
	As string `json:"as,omitempty"` // the agent that acts; "" = the header's
	// IfVersion is the version that the record must stand at; 0 = any.
	IfVersion int `json:"if_version,omitempty"`
}

// reviseRequest asks for a new version of one record.
type reviseRequest struct {
	change
	memory.Revision
}

// forgetRequest asks for one record to be forgotten.
type forgetRequest struct {
	change
}

// check completes c with the agent of the header and checks what the writer does not.
func (c *change) check(as string) *memory.Error {
	c.As = cmp.Or(c.As, as)
	switch {
	case c.ID == "":
		return memory.Errorf(memory.CodeInvalid, "id is missing").WithHint("it is the record_id that the capture was answered with")
	case c.IfVersion < 0:
		return memory.Errorf(memory.CodeInvalid, "if_version is %d, it must be positive", c.IfVersion)
	}
	return nil
}

func (s *Server) revise(ctx context.Context, namespace string, ask asked) (any, error) {
	req, err := s.queries.revise.Decode(ask.body)
	if err != nil {
		return nil, err
	}
	if err := req.check(ask.as); err != nil {
		return nil, err
	}
	resp, err := s.opt.Writer.Revise(ctx, namespace, req.As, req.ID, req.Revision, req.IfVersion, ask.id)
	return resp, api.CutShort(err)
}

func (s *Server) forget(ctx context.Context, namespace string, ask asked) (any, error) {
	req, err := s.queries.forget.Decode(ask.body)
	if err != nil {
		return nil, err
	}
	if err := req.check(ask.as); err != nil {
		return nil, err
	}
	resp, err := s.opt.Writer.Forget(ctx, namespace, req.As, req.ID, req.IfVersion)
	return resp, api.CutShort(err)
}
