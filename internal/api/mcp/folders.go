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
// changed; one without is asked with each call, as that revision has it. The last answer stands
// until there is another, or they change: a question that fails is none, and the next call asks again.
type folders struct {
	mu    sync.Mutex
	known bool
	dirs  []string
	open  *rootsQuestion // nil: the client owes no answer
}

// rootsQuestion is one that all calls wait for which come before its answer.
type rootsQuestion struct {
	dirs    []string      // the answer
	waited  chan struct{} // closed with its end, or when it is too late to wait for it
	late    func()        // closes it
	drop    context.CancelFunc
	dropped bool // the folders changed: it is to be asked again
}

// inFolders is the key under which a call's context has the folders in which it is made.
type inFolders struct{}

// of are the folders in which a call is made, nil where the client did not say: those that were said for it,
// whatever is said of later ones meanwhile.
func (f *folders) of(ctx context.Context) []string {
	if f == nil {
		return nil
	}
	if dirs, ok := ctx.Value(inFolders{}).([]string); ok {
		return dirs
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dirs
}

func (f *folders) changed(context.Context, *mcp.RootsListChangedRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known, f.dirs = false, nil // those of another project are no answer
	if f.open != nil {
		f.open.dropped = true
		f.open.drop()
		f.open = nil
	}
}

func (f *folders) set(dirs []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known, f.dirs = true, dirs
}

func dirsOf(res *mcp.ListRootsResult) (dirs []string) {
	for _, r := range res.Roots {
		if dir := folderOf(r.URI); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// wait has a call wait until the folders are known, or the client has had time to say so, and returns them. An
// answer that comes later counts, too, but for it no other call waits.
func (f *folders) wait(ctx context.Context, session *mcp.ServerSession) []string {
	for {
		q, dirs := f.unknown(ctx, session)
		if q == nil {
			return dirs
		}
		select {
		case <-q.waited:
		case <-ctx.Done():
		}
		f.mu.Lock()
		again := q.dropped && ctx.Err() == nil
		dirs = q.dirs
		f.mu.Unlock()
		if !again {
			return dirs
		}
	}
}

// unknown is the open question; where there is none, the folders are known.
func (f *folders) unknown(ctx context.Context, session *mcp.ServerSession) (open *rootsQuestion, dirs []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known || f.open != nil {
		return f.open, f.dirs
	}
	asked, drop := context.WithCancel(context.WithoutCancel(ctx)) // it is not only this call's
	q := &rootsQuestion{waited: make(chan struct{}), drop: drop}
	q.late = sync.OnceFunc(func() { close(q.waited) })
	f.open = q
	go f.put(asked, session, q) // until the answer, or the end of the session
	return q, nil
}

func (f *folders) put(ctx context.Context, session *mcp.ServerSession, q *rootsQuestion) {
	patience := time.AfterFunc(rootsPatience, q.late)
	res, err := session.ListRoots(ctx, nil)
	f.mu.Lock()
	if f.open == q {
		f.open = nil
		if err == nil {
			q.dirs = dirsOf(res)
			f.known, f.dirs = true, q.dirs
		}
	}
	f.mu.Unlock()
	patience.Stop()
	q.drop()
	q.late()
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
			dirs := dirsOf(res)
			f.set(dirs)
			return next(context.WithValue(ctx, inFolders{}, dirs), method, req)
		}
		if p := session.InitializeParams(); p == nil || p.ProtocolVersion >= "2026-07-28" {
			return question, nil
		}
		return next(context.WithValue(ctx, inFolders{}, f.wait(ctx, session)), method, req)
	}
}
