package mcp

import (
	"context"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rootsPatience is how long a client may take to say which folders it works in.
const rootsPatience = 5 * time.Second

// folders are what the client of the one session says it works in: the roots of the protocol.
// A client of a revision with sessions is asked before its first call and when it says that they
// changed; one without is asked with each call, as that revision has it.
type folders struct {
	mu    sync.Mutex
	known bool
	dirs  []string
}

// list is nil where the client did not say.
func (f *folders) list() []string {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dirs
}

func (f *folders) changed(context.Context, *mcp.RootsListChangedRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = false
}

func (f *folders) set(res *mcp.ListRootsResult) {
	var dirs []string
	for _, r := range res.Roots {
		if dir := folderOf(r.URI); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known, f.dirs = true, dirs
}

// folderOf is the path that a root names, "" for one that is no folder of this machine.
func folderOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return ""
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	return filepath.FromSlash(path)
}

// asking is the id of the question in revisions where the client asks again with its answer.
const asking = "roots"

// ask has calls wait until the client said which folders it works in, if it can.
func (f *folders) ask(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		var answers mcp.InputResponseMap
		var question mcp.Result
		questions := mcp.InputRequestMap{asking: &mcp.ListRootsParams{}}
		var offers *mcp.ClientCapabilities
		switch r := req.(type) {
		case *mcp.CallToolRequest:
			answers, offers, question = r.Params.InputResponses, r.ClientCapabilities(), &mcp.CallToolResult{InputRequests: questions}
		case *mcp.GetPromptRequest:
			answers, offers, question = r.Params.InputResponses, r.ClientCapabilities(), &mcp.GetPromptResult{InputRequests: questions}
		case *mcp.ReadResourceRequest:
			answers, offers, question = r.Params.InputResponses, r.ClientCapabilities(), &mcp.ReadResourceResult{InputRequests: questions}
		}
		if offers == nil || offers.RootsV2 == nil {
			return next(ctx, method, req)
		}
		session, _ := req.GetSession().(*mcp.ServerSession)
		if res, ok := answers[asking].(*mcp.ListRootsResult); ok {
			f.set(res)
			return next(ctx, method, req)
		}
		if p := session.InitializeParams(); p == nil || p.ProtocolVersion >= "2026-07-28" {
			return question, nil
		}
		f.mu.Lock()
		known := f.known
		f.mu.Unlock()
		if !known {
			asked, cancel := context.WithTimeout(ctx, rootsPatience)
			res, err := session.ListRoots(asked, nil)
			cancel()
			if err != nil {
				res = &mcp.ListRootsResult{} // it says that it can, and does not
			}
			f.set(res)
		}
		return next(ctx, method, req)
	}
}
