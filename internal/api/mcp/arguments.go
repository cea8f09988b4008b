package mcp

import (
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"mneme/client"
	"mneme/memory"
)

// when reads a time: as RFC 3339 has them, or a day, which begins at midnight UTC. "" is none.
func when(name, s string) (*time.Time, error) {
	if s == "" {
		return nil, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return &t, nil
		}
	}
	return nil, memory.Errorf(memory.CodeInvalid, "%s is %.40q, which is no time", name, s).
		WithHint("write it as in 2026-03-01T09:30:00Z, or a day as in 2026-03-01")
}

// anyID says that an id is empty, which would be another address than that of a memory.
func anyID(id string) error {
	if strings.TrimSpace(id) != "" {
		return nil
	}
	return memory.Errorf(memory.CodeInvalid, "the id is empty").WithHint("memory_search gives ids")
}

// wholeID reads an id of which nothing may be left out: what is changed is not guessed.
func wholeID(id string) (string, error) {
	if upper := strings.ToUpper(id); memory.ValidULID(upper) {
		return upper, nil
	}
	return "", memory.Errorf(memory.CodeInvalid, "%.60q is not the whole id of a memory", id).WithHint("memory_search gives whole ids")
}

// failed is an error of a method that answers errors by the protocol, and not as results.
func failed(err error) error {
	code := int64(jsonrpc.CodeInternalError)
	if client.Said(err) == memory.CodeInvalid {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: told(err).Error()}
}
