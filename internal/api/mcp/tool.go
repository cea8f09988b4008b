package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool: what a client is told of it, and what it does.
type tool[In, Out any] struct {
	of                Profile // the smallest profile that has it
	name, title       string
	about             string
	reads             bool // changes nothing
	destroys, repeats bool // takes something away; does the same when it is called again
	// do answers with what the structured content is, and the text for the model.
	do func(ctx context.Context, c Caller, in In) (Out, string, error)
}

// add hands a tool to a server whose profile has it.
func add[In, Out any](s *surface, server *mcp.Server, t tool[In, Out]) {
	if !s.Profile.has(t.of) {
		return
	}
	closed := false
	mcp.AddTool(server, &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.about, InputSchema: schemaOf[In](), OutputSchema: schemaOf[Out](),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.reads, DestructiveHint: &t.destroys, IdempotentHint: t.reads || t.repeats, OpenWorldHint: &closed},
	}, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		var none Out
		c, err := s.caller(ctx, req)
		if err != nil {
			return nil, none, told(err)
		}
		out, text, err := t.do(ctx, c, in)
		if err != nil {
			return nil, none, told(err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, out, nil
	})
}
