package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// progressEvery is how often a call that takes longer tells that it is at work.
const progressEvery = time.Second

// tellProgress has calls that ask for their progress tell every second how many seconds they have taken: where a node
// starts, or is busy, a client that gives up a silent call does not give up this one. Nothing is told of a call
// once it has its answer.
func tellProgress(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		token := progressToken(req)
		session, ok := req.GetSession().(*mcp.ServerSession)
		if token == nil || !ok {
			return next(ctx, method, req)
		}
		working, end := context.WithCancel(ctx)
		told := make(chan struct{})
		go func() {
			defer close(told)
			began, tick := time.Now(), time.NewTicker(progressEvery)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-working.Done():
					return
				}
				took := time.Since(began).Seconds()
				p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: took, Message: fmt.Sprintf("at work for %.0f s", took)}
				if session.NotifyProgress(working, p) != nil {
					return // nobody hears it
				}
			}
		}()
		defer func() { end(); <-told }()
		return next(ctx, method, req)
	}
}

// progressToken is by what a call wants to hear of its progress; nil is not at all.
func progressToken(req mcp.Request) any {
	switch req := req.(type) {
	case *mcp.CallToolRequest:
		return req.Params.GetProgressToken()
	case *mcp.ReadResourceRequest:
		return req.Params.GetProgressToken()
	case *mcp.GetPromptRequest:
		return req.Params.GetProgressToken()
	}
	return nil
}
