package verbs

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answering is a server that gives one answer to everything, and tells what it was asked for.
func answering(t *testing.T, status int, body string) (addr string, asked func() []string) {
	t.Helper()
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() []string { srv.Close(); return got }
}

// TestAPortalsAnswerPassedForASuccess: it answers everything by 200.
func TestAPortalsAnswerPassedForASuccess(t *testing.T) {
	for _, verb := range []string{"forget -n shop --yes 01K6X0000000000000000000A0", "revise -n shop 01K6X0000000000000000000A0 other", "capture -n shop said", "namespace create shop",
		"namespace set shop search.min_score=0.2", "search -n shop said", "list -n shop", "use shop"} {
		addr, _ := answering(t, http.StatusOK, "{}")
		var out, errs bytes.Buffer
		code := run(t.Context(), userSystem(t.TempDir(), "p", addr, &out, &errs), strings.Fields(verb))
		if kept := verb == "use shop"; kept != (code == 0) || code != 0 && code != 6 || !strings.Contains(errs.String(), "what answered is no memnode") {
			t.Errorf("%s ends with %d: %s%s", verb, code, out.String(), errs.String())
		}
	}
}

// TestAPortalsAnswerPassedForAStream: what it answers with was an export without anything in it, and memctl tail
// tried again for 40 s without a word.
func TestAPortalsAnswerPassedForAStream(t *testing.T) {
	for _, verb := range []string{"tail -n shop", "export -n shop", "export -n shop --format mcp-memory", "graph list -n shop", "audit -n shop --follow"} {
		for _, body := range []string{"", "<html>"} {
			addr, _ := answering(t, http.StatusOK, body)
			var out, errs bytes.Buffer
			code := run(t.Context(), userSystem(t.TempDir(), "p", addr, &out, &errs), strings.Fields(verb))
			if code != 6 || out.Len() > 0 || strings.Count(errs.String(), "what answered is no memnode") != 1 || strings.Count(errs.String(), "a network that asks to sign in") != 1 {
				t.Errorf("%s of %q ends with %d: %s%s", verb, body, code, out.String(), errs.String())
			}
		}
	}
}

// TestATailThatIsAwayWasNotTold: a portal that comes in between says nothing of what is followed, and is told once.
func TestATailThatIsAwayWasNotTold(t *testing.T) {
	for _, flags := range []string{"", " --json", " -q"} {
		asked := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked == 2 || asked == 3 {
				_, _ = io.WriteString(w, "<html>")
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "retry: 1\nid: p%d\ndata: {\"id\":\"e%d\"}\n\n", asked, asked)
		}))
		var out, errs bytes.Buffer
		code := run(t.Context(), userSystem(t.TempDir(), "p", srv.URL, &out, &errs), strings.Fields("tail -n shop --limit 2"+flags))
		srv.Close()
		want := 1
		if flags != "" { // which say what failed, at the end
			want = 0
		}
		if code != 0 || asked != 4 || strings.Count(out.String(), "\n") != 2 || strings.Count(errs.String(), "memctl: events stopped, trying again: asked "+srv.URL+": what answered is no memnode") != want {
			t.Errorf("tail%s ends with %d after %d calls: %s%s", flags, code, asked, out.String(), errs.String())
		}
	}
}
