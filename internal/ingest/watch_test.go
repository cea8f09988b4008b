package ingest

import (
	"testing"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/spans"
)

// TestEachRequestWatchesAFrameOnce, however its events stand among those of others, and one that
// is not recorded does not.
func TestEachRequestWatchesAFrameOnce(t *testing.T) {
	a, b := &watch{span: spans.None()}, &watch{span: spans.None()}
	got := watchersOf([]*draft{{watch: a}, {watch: b}, {}, {watch: a}, {watch: b}})
	if len(got.by) != 2 || got.by[0] != a || got.by[1] != b || got.events != 5 {
		t.Errorf("%+v", got)
	}
}

// TestFramesOfRequestsThatNobodyRecordsCostNothing more than before.
func TestFramesOfRequestsThatNobodyRecordsCostNothing(t *testing.T) {
	drafts := make([]*draft, 100)
	for i := range drafts {
		drafts[i] = &draft{}
	}
	l := &loop{}
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	allocations := testing.AllocsPerRun(100, func() {
		if watchOf(ctx) != nil || watchersOf(drafts).first().IsRecording() {
			t.Error("somebody watches")
		}
		l.tell(watchersOf(drafts), spans.Append, l.begun, l.begun)
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}
