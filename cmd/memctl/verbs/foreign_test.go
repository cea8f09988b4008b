package verbs

import (
	"bytes"
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
