package verbs

import (
	"context"

	"mneme/client"
	"mneme/memory"
)

// unasked is a node that cannot be asked, as the files that the call needs for it cannot be read.
// What a hook keeps waits until they can.
type unasked struct{ why *memory.Error }

func newUnasked(err error) unasked {
	why := memory.Errorf(memory.CodeUnavailable, "the node cannot be asked: %w", err)
	if hint := asError(err).Hint; hint != "" {
		why = why.WithHint("%s", hint)
	}
	return unasked{why}
}

func (u unasked) Search(context.Context, string, memory.SearchRequest) (r memory.SearchResponse, err error) {
	return r, u.why
}

func (u unasked) CaptureBatch(context.Context, string, []memory.Capture, client.CaptureOptions) (r memory.CaptureResponse, err error) {
	return r, u.why
}

func (u unasked) List(context.Context, string, client.ListOptions) (r memory.RecordList, err error) {
	return r, u.why
}

func (u unasked) Get(context.Context, string, string, client.GetOptions) (r memory.Record, err error) {
	return r, u.why
}

func (u unasked) History(context.Context, string, string, client.ReadOptions) (r memory.History, err error) {
	return r, u.why
}

func (u unasked) Revise(context.Context, string, string, memory.Revision, client.WriteOptions) (r memory.RevisionResponse, err error) {
	return r, u.why
}
