package client

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"mneme/memory"
)

// TestAProxysAnswerPassedForAMemnodes: whatever status another server answers with, and whatever its
// JSON says, it is told from a refusal of a memnode.
func TestAProxysAnswerPassedForAMemnodes(t *testing.T) {
	for _, body := range []string{"<html>The plain HTTP request was sent to HTTPS port</html>", `{"code":"invalid","message":"no"}`, `{"code":"gone","status":410}`,
		`{"type":"about:blank","code":"gone","status":418}`, ""} {
		for _, status := range []int{302, 400, 401, 403, 404, 405, 409, 410, 413, 500, 503} {
			cl, _ := serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			})
			if _, err := cl.Status(t.Context()); !errors.Is(err, ErrForeign) {
				t.Errorf("%d %s: %v", status, body, err)
			}
		}
	}
	cl, _ := serve(t, Options{}, refuse(memory.Errorf(memory.CodeInvalid, "no")))
	if _, err := cl.Status(t.Context()); err == nil || errors.Is(err, ErrForeign) {
		t.Errorf("a memnode's: %v", err)
	}
}

// TestAnEmptyAnswerPassedForAMemnodes: a portal answers everything by 200, and a memory was said to be forgotten, or
// a namespace to be made.
func TestAnEmptyAnswerPassedForAMemnodes(t *testing.T) {
	ctx, unknown := t.Context(), memory.CodeOutcomeUnknown
	for name, c := range map[string]struct {
		call func(c *Client) error
		code memory.Code
	}{
		"batch": {func(c *Client) error {
			_, err := c.CaptureBatch(ctx, "ns", []memory.Capture{{Text: "x"}}, CaptureOptions{})
			return err
		}, unknown},
		"capture": {func(c *Client) error {
			_, err := c.Capture(ctx, "ns", memory.Capture{Text: "x"}, CaptureOptions{})
			return err
		}, unknown},
		"revise": {func(c *Client) error {
			_, err := c.Revise(ctx, "ns", "r", memory.Revision{}, WriteOptions{})
			return err
		}, unknown},
		"forget": {func(c *Client) error { _, err := c.Forget(ctx, "ns", "r", WriteOptions{}); return err }, unknown},
		"create": {func(c *Client) error {
			_, err := c.CreateNamespace(ctx, memory.CreateNamespace{Name: "ns"})
			return err
		}, unknown},
		"patch":   {func(c *Client) error { _, err := c.PatchNamespace(ctx, "ns", memory.PatchNamespace{}); return err }, unknown},
		"delete":  {func(c *Client) error { return c.DeleteNamespace(ctx, "ns") }, unknown},
		"graph":   {func(c *Client) error { _, err := GraphOf(c, "ns").Change(ctx, memory.GraphChange{}); return err }, unknown},
		"drain":   {func(c *Client) error { _, err := c.Cluster().Drain(ctx, memory.DrainNode{}); return err }, unknown},
		"get":     {func(c *Client) error { _, err := c.Get(ctx, "ns", "r", GetOptions{}); return err }, memory.CodeUnavailable},
		"search":  {func(c *Client) error { _, err := c.Search(ctx, "ns", memory.SearchRequest{}); return err }, memory.CodeUnavailable},
		"by uri":  {func(c *Client) error { _, err := c.GetByURI(ctx, "ns", "a", ReadOptions{}); return err }, memory.CodeUnavailable},
		"history": {func(c *Client) error { _, err := c.History(ctx, "ns", "r", ReadOptions{}); return err }, memory.CodeUnavailable},
		"status":  {func(c *Client) error { _, err := c.Status(ctx); return err }, memory.CodeUnavailable},
	} {
		for _, body := range []string{"{}", "null", "[]", `"ok"`, `{"status":"ok","message":"log in first"}`, "<html>", "\xff"} {
			cl, _ := serve(t, Options{}, text(body))
			if err := c.call(cl); !errors.Is(err, ErrForeign) || memory.CodeOf(err) != c.code {
				t.Errorf("%s, %s: %v (%s)", name, body, err, memory.CodeOf(err))
			}
		}
	}
}

// TestAnswersOfOtherVersionsAreMemnodes: a field that is new since is in none of an older memnode's answers, and one that is newer is
// not known here.
func TestAnswersOfOtherVersionsAreMemnodes(t *testing.T) {
	cl, _ := serve(t, Options{}, text(`{"record_id":"r","version":2,"shard":7}`))
	if resp, err := cl.Revise(t.Context(), "ns", "r", memory.Revision{}, WriteOptions{}); err != nil || resp.Version != 2 {
		t.Errorf("%+v, %v", resp, err)
	}
}

// TestAPortalsAnswerPassedForAStream: an empty 200 was an export without anything in it, a backup, or a stream that broke off.
func TestAPortalsAnswerPassedForAStream(t *testing.T) {
	ctx, unavailable, unknown := t.Context(), memory.CodeUnavailable, memory.CodeOutcomeUnknown
	for name, c := range map[string]struct {
		call func(c *Client, w io.Writer) error
		code memory.Code
	}{
		"events": {func(c *Client, _ io.Writer) error {
			for _, err := range c.Events(ctx, "ns", EventsOptions{}) {
				return err
			}
			return nil
		}, unavailable},
		"graph": {func(c *Client, w io.Writer) error {
			return GraphOf(c, "ns").Stream(ctx, ReadOptions{}, func(memory.GraphLine) error { _, err := w.Write([]byte{1}); return err })
		}, unavailable},
		"verify":  {func(c *Client, _ io.Writer) error { _, err := c.VerifyLog(ctx, nil); return err }, unavailable},
		"rebuild": {func(c *Client, _ io.Writer) error { _, err := c.Rebuild(ctx, nil); return err }, unknown},
		"log":     {func(c *Client, w io.Writer) error { _, err := c.Backups().Log(ctx, w, "", nil); return err }, unavailable},
		"keys":    {func(c *Client, w io.Writer) error { _, err := c.Backups().Keys(ctx, w, false, nil); return err }, unavailable},
		"bundle":  {func(c *Client, w io.Writer) error { return (&Local{c}).DebugBundle(ctx, w) }, unavailable},
	} {
		for _, media := range []string{"", "text/html", mediaJSON, "text/plain; charset=utf-8"} {
			for _, body := range []string{"", "<html>", "{}", event(1)} {
				cl, rec := serve(t, Options{}, typed(media, body))
				var got bytes.Buffer
				err := c.call(cl, &got)
				if !errors.Is(err, ErrForeign) || memory.CodeOf(err) != c.code || got.Len() > 0 || len(rec.requests()) != 1 {
					t.Errorf("%s, %q as %q: %v (%s), %q after %d requests", name, body, media, err, memory.CodeOf(err), got.String(), len(rec.requests()))
				}
				if c.code == unavailable && memory.AsError(err).Hint != foreignHint {
					t.Errorf("%s: %q", name, memory.AsError(err).Hint)
				}
			}
		}
	}
	cl, _ := serve(t, Options{}, typed("Application/X-NDJSON ; charset=utf-8", ""))
	if err := GraphOf(cl, "ns").Stream(ctx, ReadOptions{}, nil); err != nil {
		t.Errorf("a memnode's: %v", err)
	}
}

// TestAnEmptyAnswerOfAPortalBrokeOff: it is whole, and of what a memnode never sends.
func TestAnEmptyAnswerOfAPortalBrokeOff(t *testing.T) {
	for _, answer := range []http.HandlerFunc{text(""), typed("text/html", ""), typed("text/html", "{")} {
		cl, _ := serve(t, Options{}, answer)
		if _, err := cl.Status(t.Context()); !errors.Is(err, ErrForeign) || memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("%v", err)
		}
	}
}

// TestACutAnswerIsAMemnodes: where an answer breaks off nobody else has said anything.
func TestACutAnswerIsAMemnodes(t *testing.T) {
	for _, body := range []string{"", `{"record_id":`} {
		cl, _ := serve(t, Options{}, typed(mediaJSON, body))
		if _, err := cl.Forget(t.Context(), "ns", "r", WriteOptions{}); errors.Is(err, ErrForeign) || memory.CodeOf(err) != memory.CodeOutcomeUnknown {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// TestSaid: what others answer decides nothing but when to ask again, and with which credential.
func TestSaid(t *testing.T) {
	if code := Said(nil); code != "" {
		t.Error(code)
	}
	for _, code := range memory.Codes() {
		want := code
		switch code {
		case memory.CodeInvalid, memory.CodeForbidden, memory.CodeNotFound, memory.CodeConflict, memory.CodeStalePosition, memory.CodeLostPosition,
			memory.CodeGone, memory.CodeTooLarge, memory.CodeQuota, memory.CodeInternal:
			want = memory.CodeUnavailable
		}
		if own, of := Said(memory.Errorf(code, "no")), Said(memory.Errorf(code, "no").WithCause(ErrForeign)); own != code || of != want {
			t.Errorf("%s: %s of a memnode, %s of another", code, own, of)
		}
	}
}

// TestAProxySettledALostAnswer: the first try of a capture may have been taken, of which what a proxy
// says of the second one says nothing.
func TestAProxySettledALostAnswer(t *testing.T) {
	calls := 0
	cl, _ := serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			_, _ = io.WriteString(w, "{")
			return
		}
		w.WriteHeader(http.StatusBadRequest)
	})
	_, err := cl.CaptureBatch(t.Context(), "a", []memory.Capture{{Text: "x"}}, CaptureOptions{})
	if memory.CodeOf(err) != memory.CodeOutcomeUnknown || calls != 2 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
