package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/internal/recall"
	"mneme/memory"
)

func (s *surface) addPrompts(server *mcp.Server) {
	server.AddPrompt(&mcp.Prompt{Name: "recall", Title: "Recall what is known",
		Description: "Puts what the team's memory holds about a task in front of it.",
		Arguments:   []*mcp.PromptArgument{{Name: "task", Title: "Task", Description: "What you are about to do, or want to know.", Required: true}},
	}, s.recallPrompt)
	server.AddPrompt(&mcp.Prompt{Name: "remember", Title: "Remember what was learned",
		Description: "Asks for what is worth keeping of this conversation.",
	}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return said("Keep what somebody will want to know next time", rememberPrompt), nil
	})
}

const rememberPrompt = `Look back over this conversation. For each thing that will be worth knowing in a later one (a decision and its reason, a preference, a fix and what was wrong, how something works, what is still to be done) first ask memory_search whether it is known already, and then keep what is new with memory_store: one call each, in a sentence or two that can be understood alone, with the kind that fits. If what is known has become wrong, store the new state, and forget the old one where there is a tool for it. Leave out what stands in the code or in commits, and secrets. Then say in a line each what you kept.`

func (s *surface) recallPrompt(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	task := req.Params.Arguments["task"]
	c, err := s.caller(ctx, req)
	if err != nil {
		return nil, failed(err)
	}
	if strings.TrimSpace(task) == "" {
		return nil, failed(memory.Errorf(memory.CodeInvalid, "the argument task is empty").WithHint("say what you are about to do, or want to know"))
	}
	limit := recall.Ask(recall.DefaultLimit)
	resp, err := c.Client.Search(ctx, c.Namespace, memory.SearchRequest{Query: task, Syntax: memory.SyntaxPlain, As: c.Agent, Limit: &limit, Purpose: memory.PurposeInject})
	if err != nil {
		return nil, failed(err)
	}
	b := recall.Compose(resp.Results, recall.DefaultLimit, recall.DefaultBudget)
	if b.Text == "" {
		return said("Nothing in memory fits", task), nil
	}
	return said("What is known about it", b.Text+"\n\n"+task), nil
}

func said(about, text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Description: about, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
}
