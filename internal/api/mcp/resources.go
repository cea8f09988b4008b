package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/memory"
)

const (
	recordScheme   = "mneme://memories/"
	recordTemplate = recordScheme + "{id}"
)

func (s *surface) addResources(server *mcp.Server) {
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "memory", Title: "A memory", URITemplate: recordTemplate, MIMEType: "application/json",
		Description: "One memory by its id, with all that is known of it."}, s.readRecord)
}

func (s *surface) readRecord(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	id, err := url.PathUnescape(strings.TrimPrefix(uri, recordScheme))
	if err != nil || !strings.HasPrefix(uri, recordScheme) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	c, err := s.caller(ctx, req)
	if err != nil {
		return nil, failed(err)
	}
	rec, err := c.Client.Get(ctx, c.Namespace, id, client.GetOptions{ReadOptions: client.ReadOptions{As: c.Agent}})
	switch client.Said(err) {
	case memory.CodeNotFound, memory.CodeGone, memory.CodeInvalid:
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, failed(err)
	}
	b, err := json.MarshalIndent(wholeOf(&rec), "", "  ")
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(b)}}}, nil
}

// maxCompletions is how many values the protocol allows.
const maxCompletions = 100

// complete finishes the id of a memory from those that were stored last.
func (s *surface) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	out := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	ref, arg := req.Params.Ref, req.Params.Argument
	if ref == nil || ref.Type != "ref/resource" || ref.URI != recordTemplate || arg.Name != "id" {
		return out, nil
	}
	c, err := s.caller(ctx, req)
	if err != nil {
		return nil, failed(err)
	}
	few := 0
	l, err := c.Client.List(ctx, c.Namespace, client.ListOptions{ReadOptions: client.ReadOptions{As: c.Agent},
		ListRequest: memory.ListRequest{Limit: memory.MaxLimit, Fit: memory.Fit{MaxText: &few, Fields: []string{"record_id"}}}})
	if err != nil {
		return nil, failed(err)
	}
	for _, r := range l.Records {
		if !strings.HasPrefix(r.RecordID, strings.ToUpper(arg.Value)) {
			continue
		}
		if len(out.Completion.Values) == maxCompletions {
			out.Completion.HasMore = true
			break
		}
		out.Completion.Values = append(out.Completion.Values, r.RecordID)
	}
	return out, nil
}
