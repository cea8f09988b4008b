package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is a client of a server that runs as a process, over its standard input and output.
type session struct{ *sdk.ClientSession }

// connect starts a server. Closing the session ends it.
func connect(ctx context.Context, cmd *exec.Cmd) (session, error) {
	s, err := sdk.NewClient(&sdk.Implementation{Name: "mneme-bench", Version: "1"}, nil).Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return session{}, fmt.Errorf("connect to %s: %w", cmd.Path, err)
	}
	return session{s}, nil
}

// call calls a tool, and decodes what it answers into out, unless out is nil. The time is the
// call's alone.
func (s session) call(ctx context.Context, tool string, args, out any) (time.Duration, error) {
	began := time.Now()
	res, err := s.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	took := time.Since(began)
	if err != nil {
		return took, fmt.Errorf("%s: %w", tool, err)
	}
	if res.IsError {
		said, _ := json.Marshal(res.Content)
		return took, fmt.Errorf("%s: %s", tool, said)
	}
	if out == nil {
		return took, nil
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		return took, fmt.Errorf("%s: %w", tool, err)
	}
	return took, nil
}
