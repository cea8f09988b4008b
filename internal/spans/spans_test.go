package spans

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestTraceIDOfAHeader(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for header, want := range map[string]string{
		"00-" + id + "-00f067aa0ba902b7-01":                 id,
		"cc-" + id + "-00f067aa0ba902b7-01-what-the-future": id,
		"": "", "00-" + id: "", "ff-" + id + "-00f067aa0ba902b7-01": "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-" + id + "-0000000000000000-01":                       "",
		"00-" + id + "-00f067aa0ba902b7-01x":                      "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "",
	} {
		if got := TraceID(Continue(t.Context(), header)); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

// TestOtherNodesRecordOnlyWhatThisOneDoes: a caller's flag is not passed on as it came.
func TestOtherNodesRecordOnlyWhatThisOneDoes(t *testing.T) {
	const head = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"
	if got := Outgoing(Continue(t.Context(), head+"1")); got != head+"0" {
		t.Errorf("%q", got)
	}
	if got := Outgoing(t.Context()); got != "" {
		t.Errorf("%q without a trace", got)
	}
}

// TestNothingIsAllocatedWhereNothingIsRecorded: what a request costs that nobody records.
func TestNothingIsAllocatedWhereNothingIsRecorded(t *testing.T) {
	ctx := context.WithValue(t.Context(), carrier{}, 1)
	allocations := testing.AllocsPerRun(1000, func() {
		ctx := Continue(ctx, "")
		ctx, request := Begin(ctx, nil, trace.SpanKindServer, "GET /x")
		below, span := Start(ctx, Score)
		_, call := Call(below, Forward)
		if request.IsRecording() || Recorded(span) || Exemplar(call) != nil || Outgoing(ctx) != "" {
			t.Error("something is recorded")
		}
		End(call, nil)
		End(span, nil)
		End(request, nil)
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// BenchmarkNotRecorded is what the spans of a capture cost where nothing is recorded.
func BenchmarkNotRecorded(b *testing.B) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		ctx, request := Begin(Continue(ctx, ""), nil, trace.SpanKindServer, "GET /x")
		_, span := Start(ctx, CreateMemory)
		End(span, nil)
		End(request, nil)
	}
}
