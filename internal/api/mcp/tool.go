package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool: what a client is told of it, and what it does.
type tool[In, Out any] struct {
	of                Profile // the smallest profile that has it
	name, title       string
	about             string
	alone             string // what a client is told instead where it has the tools of ProfileMicro only; "" = about
	reads             bool   // changes nothing
	destroys, repeats bool   // takes something away; does the same when it is called again
	// do answers with what the structured content is, and the text for the model.
	do func(ctx context.Context, c Caller, in In) (Out, string, error)
}

// add hands a tool to a server whose profile has it.
func add[In, Out any](s *surface, server *mcp.Server, t tool[In, Out]) {
	if !s.offers(t.name, t.of) {
		return
	}
	if s.Profile == ProfileMicro && t.alone != "" {
		t.about = t.alone
	}
	closed, in := false, schemaOf[In]()
	s.arguments[t.name] = slices.Sorted(maps.Keys(in.Properties))
	mcp.AddTool(server, &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.about, InputSchema: in, OutputSchema: schemaOf[Out](),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.reads, DestructiveHint: &t.destroys, IdempotentHint: t.reads || t.repeats, OpenWorldHint: &closed},
	}, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		c, err := s.caller(ctx, req)
		if err != nil {
			return nil, nil, s.told(err)
		}
		out, text, err := t.do(ctx, c, in)
		if err != nil {
			return nil, nil, s.told(err)
		}
		res, err := result(out, text)
		return res, nil, err
	})
}

// result is the answer of a tool, with its structured content as it is sent. Left to the SDK, that
// would be read again, held against its schema and written once more; a test holds all tools' against theirs.
func result(out any, text string) (*mcp.CallToolResult, error) {
	structured, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: json.RawMessage(structured)}, nil
}

// offers reports whether the server's profile has a tool, and remembers those that it does not.
func (s *surface) offers(name string, of Profile) bool {
	if s.Profile.has(of) {
		return true
	}
	s.elsewhere[name] = of
	return false
}

// toldWhere has a call of a tool that other profiles have answered with their names.
func (s *surface) toldWhere(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok {
			if of, ok := s.elsewhere[call.Params.Name]; ok {
				var have []string
				for _, p := range Profiles {
					if p.has(of) {
						have = append(have, string(p))
					}
				}
				names := strings.Join(have, " or ")
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(
					"the profile %s of tools has no %s: use the profile %s (memctl mcp --profile, or ?profile= in the address)", s.Profile, call.Params.Name, names)}
			}
		}
		return next(ctx, method, req)
	}
}

// toldArguments has a call whose arguments a tool does not have answered with those that it has: a
// model that took one tool's for another's has no other way to know.
func (s *surface) toldArguments(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		out, err := next(ctx, method, req)
		call, ok := req.(*mcp.CallToolRequest)
		if !ok || err != nil {
			return out, err
		}
		res, ok := out.(*mcp.CallToolResult)
		if !ok || !res.IsError || len(res.Content) != 1 {
			return out, err
		}
		if text, ok := res.Content[0].(*mcp.TextContent); ok && strings.HasPrefix(text.Text, `validating "arguments"`) && s.arguments[call.Params.Name] != nil {
			text.Text += fmt.Sprintf(". The arguments of %s are %s.", call.Params.Name, strings.Join(s.arguments[call.Params.Name], ", "))
		}
		return out, err
	}
}
