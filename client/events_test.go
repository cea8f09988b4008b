package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"mneme/memory"
)

// event is one message of a stream.
func event(n int) string {
	return fmt.Sprintf("id: p%d\nevent: captured\ndata: {\"specversion\":\"1.0\",\ndata: \"id\":\"e%d\"}\n\n", n, n)
}

func collect(t *testing.T, cl *Client, ctx context.Context, opts EventsOptions, limit int) (got []string, end error) {
	t.Helper()
	for ev, err := range cl.Events(ctx, "ns", opts) {
		if err != nil {
			return got, err
		}
		got = append(got, ev.ID+"@"+ev.Position)
		if len(got) == limit {
			return got, nil
		}
	}
	return got, nil
}

func TestEventsResumeAfterEachBreak(t *testing.T) {
	hello := ": hello\nretry: 1\n\n"
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", eventStream)
		_, _ = io.WriteString(w, event(3)+"id: p4\ndata: {\"half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	cl, rec := serve(t, Options{Agent: "me"}, feed(hello+event(1)+event(2)), feed(""), refuse(memory.Errorf(memory.CodeUnavailable, "starting")),
		feed(event(2)), cut, feed(event(4)+event(5)))
	got, err := collect(t, cl, t.Context(), EventsOptions{From: "p0", Reconnect: time.Nanosecond}, 5)
	if want := []string{"e1@p1", "e2@p2", "e3@p3", "e4@p4", "e5@p5"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %q, %v", got, err)
	}
	for i, r := range rec.requests() {
		if r.Path != "/v1/namespaces/ns/events" || r.Query != "as=me&from=p0" || !strings.HasPrefix(r.Accept, "text/event-stream") {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

func TestEventsSendWhereTheyWere(t *testing.T) {
	var ids []string
	keep := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ids = append(ids, r.Header.Get("Last-Event-ID"))
			feed(body)(w, r)
		}
	}
	cl, _ := serve(t, Options{}, keep(event(1)), keep(event(2)+"id: p7\n\n"), keep(event(8)))
	if got, err := collect(t, cl, t.Context(), EventsOptions{As: "x", Reconnect: time.Nanosecond}, 3); err != nil || len(got) != 3 {
		t.Fatalf("got %q, %v", got, err)
	}
	if want := []string{"", "p1", "p7"}; !reflect.DeepEqual(ids, want) {
		t.Fatalf("Last-Event-ID %q, want %q", ids, want)
	}
}

func TestEventsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		code    memory.Code
		sent    int
	}{
		"refused at first":    {[]http.HandlerFunc{refuse(memory.Errorf(memory.CodeNotFound, "no"))}, memory.CodeNotFound, 1},
		"away at first":       {[]http.HandlerFunc{refuse(memory.Errorf(memory.CodeUnavailable, "no"))}, memory.CodeUnavailable, 1},
		"refused later":       {[]http.HandlerFunc{feed(event(1)), refuse(memory.Errorf(memory.CodeLostPosition, "no"))}, memory.CodeLostPosition, 2},
		"refused in between":  {[]http.HandlerFunc{feed(event(1) + "event: error\ndata: {\"code\":\"gone\",\"detail\":\"x\"}\n\n")}, memory.CodeGone, 1},
		"away for too long":   {[]http.HandlerFunc{feed("retry: 1\n\n")}, memory.CodeUnavailable, 3},
		"not an event":        {[]http.HandlerFunc{feed("id: p1\ndata: nonsense\n\n")}, memory.CodeInternal, 1},
		"data that never end": {[]http.HandlerFunc{feed("data: " + strings.Repeat("x", maxSSELine+1) + "\n\n")}, memory.CodeUnavailable, 3},
	} {
		cl, rec := serve(t, Options{}, c.answers...)
		_, err := collect(t, cl, t.Context(), EventsOptions{Reconnect: time.Nanosecond, MaxAttempts: 3}, 9)
		if memory.CodeOf(err) != c.code || len(rec.requests()) != c.sent {
			t.Errorf("%s: %v (%s) after %d requests", name, err, memory.CodeOf(err), len(rec.requests()))
		}
	}
}

// TestAFeedThatIsAwayWasNotTold: once for each time, and not where the first attempt brings it back. What a portal
// answers says nothing of it, whichever status that has.
func TestAFeedThatIsAwayWasNotTold(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	cl, _ := serve(t, Options{}, feed(event(1)), feed(event(2)), text(""), status(http.StatusForbidden), status(http.StatusFound), feed(event(3)),
		refuse(memory.Errorf(memory.CodeUnavailable, "starting")), feed(""), feed(event(4)))
	var told []string
	opts := EventsOptions{Reconnect: time.Nanosecond, Away: func(err error) { told = append(told, string(memory.CodeOf(err))) }}
	got, err := collect(t, cl, t.Context(), opts, 4)
	if err != nil || strings.Join(got, " ") != "e1@p1 e2@p2 e3@p3 e4@p4" || strings.Join(told, " ") != "unavailable unavailable" {
		t.Errorf("got %q, %v, told %q", got, err, told)
	}
	cl, _ = serve(t, Options{}, feed(event(1)), status(http.StatusForbidden))
	if _, err = collect(t, cl, t.Context(), EventsOptions{Reconnect: time.Nanosecond, MaxAttempts: 3}, 2); !errors.Is(err, ErrForeign) {
		t.Errorf("it stays away: %v", err)
	}
	cl, rec := serve(t, Options{}, feed(event(1)), status(http.StatusUnauthorized))
	if _, err = collect(t, cl, t.Context(), EventsOptions{Reconnect: time.Nanosecond}, 2); memory.CodeOf(err) != memory.CodeUnauthenticated || len(rec.requests()) != 2 {
		t.Errorf("it asks for a credential: %v", err)
	}
}

func TestEventsEndWithTheContext(t *testing.T) {
	for name, pause := range map[string]time.Duration{"while it waits": time.Hour, "while it reads": 0} {
		ctx, cancel := context.WithCancel(t.Context())
		cl, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			feed(event(1))(w, r)
			_ = http.NewResponseController(w).Flush()
			if pause == 0 {
				<-r.Context().Done()
			}
			context.AfterFunc(r.Context(), cancel)
		})
		var end error
		for _, err := range cl.Events(ctx, "ns", EventsOptions{Reconnect: pause}) {
			if err == nil && pause == 0 {
				cancel()
			}
			end = err
		}
		if memory.CodeOf(end) != memory.CodeTimeout || !errors.Is(end, context.Canceled) {
			t.Errorf("%s: %v", name, end)
		}
		cancel()
	}
}

func TestSSE(t *testing.T) {
	long := strings.Repeat("y", 100<<10)
	in := ": comment\r\nid:1\r\nevent: a\r\ndata: x\r\ndata:  y\r\n\r\n\nid: nul\x00\ndata\n\nretry: soon\nid: 9\n\nretry: 20\n\nunknown: z\ndata: " + long + "\n\ndata: unfinished\n"
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in))} {
		s := newSSE(r)
		var got []sseMessage
		for {
			m, err := s.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
			got = append(got, m)
		}
		want := []sseMessage{{id: "1", name: "a", data: []byte("x\n y")}, {data: nil}, {id: "9"}, {retry: 20 * time.Millisecond}, {data: []byte(long)}}
		if len(got) != len(want) {
			t.Fatalf("%s: %d messages", name, len(got))
		}
		for i := range want {
			if got[i].id != want[i].id || got[i].name != want[i].name || string(got[i].data) != string(want[i].data) || got[i].retry != want[i].retry {
				t.Errorf("%s: message %d: %.80v, want %.80v", name, i, got[i], want[i])
			}
		}
	}
}

func TestSSEBoundsManyLinesOfData(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	if _, err := newSSE(strings.NewReader(strings.Repeat(line, 6))).next(); !errors.Is(err, errSSETooLong) {
		t.Fatalf("error %v", err)
	}
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte(event(1)))
	f.Add([]byte("retry: 99999999999999999999\n\ndata\n\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newSSE(strings.NewReader(string(b)))
		for range len(b) + 1 {
			m, err := s.next()
			if err != nil {
				return
			}
			if len(m.data) > len(b) {
				t.Fatalf("%d bytes of data from %d", len(m.data), len(b))
			}
		}
		t.Fatal("more messages than bytes")
	})
}
