package client

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"mneme/memory"
)

// cluster starts a server for each list of answers, and a client for all of them. A server
// without answers is not there.
func cluster(t *testing.T, opts Options, answers ...[]http.HandlerFunc) (*Client, []*recorder) {
	t.Helper()
	var addrs []string
	var recs []*recorder
	for _, list := range answers {
		rec := &recorder{answers: list}
		srv := httptest.NewUnstartedServer(rec)
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.Start()
		t.Cleanup(srv.Close)
		if len(list) == 0 {
			srv.Close()
		}
		addrs, recs = append(addrs, srv.URL), append(recs, rec)
	}
	c, err := New(strings.Join(addrs, ","), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, recs
}

// counts is how many requests each server has seen.
func counts(recs []*recorder) string {
	var out []string
	for _, r := range recs {
		out = append(out, string(rune('0'+len(r.requests()))))
	}
	return strings.Join(out, " ")
}

func on(h ...http.HandlerFunc) []http.HandlerFunc { return h }

var away = refuse(memory.Errorf(memory.CodeUnavailable, "the node is shutting down"))

// TestACallGoesOnToTheNextNodeOnlyWhereThatIsSafe tells for each kind of call, and each way
// in which the first of three nodes fails, whether the second one is asked.
func TestACallGoesOnToTheNextNodeOnlyWhereThatIsSafe(t *testing.T) {
	search := func(c *Client) error {
		_, err := c.Search(t.Context(), "ns", memory.SearchRequest{Query: "q"})
		return err
	}
	capture := func(c *Client) error {
		_, err := c.Capture(t.Context(), "ns", memory.Capture{Text: "a"}, CaptureOptions{})
		return err
	}
	revise := func(c *Client) error {
		_, err := c.Revise(t.Context(), "ns", "r", memory.Revision{}, WriteOptions{})
		return err
	}
	forget := func(c *Client) error { _, err := c.Forget(t.Context(), "ns", "r", WriteOptions{}); return err }
	create := func(c *Client) error {
		_, err := c.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "ns"})
		return err
	}
	answers := map[string]any{"search": memory.SearchResponse{}, "capture": one(), "revise": memory.RevisionResponse{}, "forget": memory.ForgetResponse{}, "create": memory.Namespace{}}
	stale := refuse(memory.Errorf(memory.CodeStalePosition, "not there yet"))
	unknown := refuse(memory.Errorf(memory.CodeOutcomeUnknown, "?"))
	busy := refuse(memory.Errorf(memory.CodeOverloaded, "busy"))
	proxy := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	for _, tt := range []struct {
		call  string
		do    func(*Client) error
		how   string
		first []http.HandlerFunc
		code  memory.Code
		asked string
	}{
		{"search", search, "is not there", nil, "", "0 1 0"},
		{"search", search, "loses the answer", on(lose), "", "1 1 0"},
		{"search", search, "cuts the answer off", on(text(`{"results":`)), memory.CodeUnavailable, "1 0 0"},
		{"search", search, "is unavailable", on(away), "", "1 1 0"},
		{"search", search, "has not reached the position", on(stale), "", "1 1 0"},
		{"search", search, "is busy", on(busy), memory.CodeOverloaded, "1 0 0"},
		{"search", search, "is a proxy", on(proxy), "", "1 1 0"},
		{"capture", capture, "is not there", nil, "", "0 1 0"},
		{"capture", capture, "loses the answer", on(lose), "", "1 1 0"},
		{"capture", capture, "cuts the answer off", on(text(`{"results":`)), "", "1 1 0"},
		{"capture", capture, "is unavailable", on(away), "", "1 1 0"},
		{"capture", capture, "is not sure", on(unknown, reply(one())), "", "2 0 0"},
		{"capture", capture, "is busy", on(busy), memory.CodeOverloaded, "1 0 0"},
		{"revise", revise, "is not there", nil, "", "0 1 0"},
		{"revise", revise, "is unavailable", on(away), "", "1 1 0"},
		{"revise", revise, "loses the answer", on(lose), memory.CodeOutcomeUnknown, "1 0 0"},
		{"revise", revise, "is a proxy", on(proxy), memory.CodeUnavailable, "1 0 0"},
		{"forget", forget, "is unavailable", on(away), "", "1 1 0"},
		{"forget", forget, "loses the answer", on(lose), memory.CodeOutcomeUnknown, "1 0 0"},
		{"create", create, "is not there", nil, "", "0 1 0"},
		{"create", create, "is unavailable", on(away), memory.CodeUnavailable, "1 0 0"},
		{"create", create, "loses the answer", on(lose), memory.CodeOutcomeUnknown, "1 0 0"},
	} {
		t.Run(tt.call+" of a node that "+tt.how, func(t *testing.T) {
			answer := reply(answers[tt.call])
			c, recs := cluster(t, Options{}, tt.first, on(answer), on(answer))
			err := tt.do(c)
			if memory.CodeOf(err) != tt.code || counts(recs) != tt.asked {
				t.Errorf("%v (%s), requests %s, want code %q, requests %s", err, memory.CodeOf(err), counts(recs), tt.code, tt.asked)
			}
		})
	}
}

func TestAClientKeepsToTheNodeThatTakesItsCalls(t *testing.T) {
	c, recs := cluster(t, Options{}, nil, on(reply(one()), reply(one()), away), on(reply(one())))
	for i, want := range []string{"0 1 0", "0 2 0", "0 3 1", "0 3 2"} {
		if _, err := c.Capture(t.Context(), "ns", memory.Capture{Text: "a"}, CaptureOptions{}); err != nil || counts(recs) != want {
			t.Errorf("call %d: %v, requests %s, want %s", i, err, counts(recs), want)
		}
	}
	if c.Addr() != c.nodes.list[2].String() {
		t.Errorf("it talks to %s", c.Addr())
	}
	// A write that was lost is not sent again, but the next one goes elsewhere.
	c, recs = cluster(t, Options{}, on(lose), on(reply(memory.ForgetResponse{})))
	_, first := c.Forget(t.Context(), "ns", "r", WriteOptions{})
	_, second := c.Forget(t.Context(), "ns", "r", WriteOptions{})
	if memory.CodeOf(first) != memory.CodeOutcomeUnknown || second != nil || counts(recs) != "1 1" {
		t.Errorf("%v, %v, requests %s", first, second, counts(recs))
	}
}

func TestAClientOfNodesOfWhichNoneAnswersNamesThemAll(t *testing.T) {
	c, _ := cluster(t, Options{}, nil, nil)
	_, err := c.Search(t.Context(), "ns", memory.SearchRequest{Query: "q"})
	for _, base := range c.nodes.list {
		if memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(err.Error(), base.String()) || memory.AsError(err).Hint == "" {
			t.Errorf("got %+v", err)
		}
	}
	// What one of them said is worth more.
	c, _ = cluster(t, Options{}, nil, on(away), nil)
	if _, err := c.Capture(t.Context(), "ns", memory.Capture{Text: "a"}, CaptureOptions{}); memory.CodeOf(err) != memory.CodeUnavailable || err.Error() != "the node is shutting down" {
		t.Errorf("got %v", err)
	}
	c, recs := cluster(t, Options{}, on(lose), on(lose), on(lose))
	if _, err := c.Capture(t.Context(), "ns", memory.Capture{Text: "a"}, CaptureOptions{}); memory.CodeOf(err) != memory.CodeOutcomeUnknown || counts(recs) != "1 1 1" {
		t.Errorf("%v, requests %s", err, counts(recs))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	c, recs = cluster(t, Options{}, on(reply(one())), on(reply(one())))
	if _, err := c.Capture(gone, "ns", memory.Capture{Text: "a"}, CaptureOptions{}); memory.CodeOf(err) != memory.CodeTimeout || !errors.Is(err, context.Canceled) || counts(recs) != "0 0" {
		t.Errorf("%v, requests %s", err, counts(recs))
	}
}

// A stream of events goes on at another node behind the last position.
func TestAStreamGoesOnAtTheNextNode(t *testing.T) {
	begin := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", eventStream)
		_, _ = io.WriteString(w, "id: p0.0.1.0\ndata: {\"id\":\"1\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	var resumed string
	goOn := func(w http.ResponseWriter, r *http.Request) {
		resumed = r.Header.Get("Last-Event-ID")
		feed("id: p0.0.2.0\ndata: {\"id\":\"2\"}\n\n")(w, r)
	}
	c, recs := cluster(t, Options{}, on(begin, away), on(goOn))
	var got []string
	for ev, err := range c.Events(t.Context(), "ns", EventsOptions{Reconnect: time.Millisecond}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, ev.ID); len(got) == 2 {
			break
		}
	}
	if strings.Join(got, " ") != "1 2" || resumed != "p0.0.1.0" || counts(recs) != "1 1" {
		t.Errorf("events %v, resumed at %q, requests %s", got, resumed, counts(recs))
	}
}

// What is read as it comes is asked of the next node where another server answers in the place of one.
func TestAPortalInThePlaceOfANode(t *testing.T) {
	c, recs := cluster(t, Options{}, on(text("<html>")), on(feed(event(1))))
	if got, err := collect(t, c, t.Context(), EventsOptions{}, 1); err != nil || len(got) != 1 || counts(recs) != "1 1" {
		t.Errorf("%q, %v, requests %s", got, err, counts(recs))
	}
	c, recs = cluster(t, Options{}, on(text("<html>")), on(ndjson("")))
	if _, err := c.Rebuild(t.Context(), nil); memory.CodeOf(err) != memory.CodeOutcomeUnknown || counts(recs) != "1 0" {
		t.Errorf("%v, requests %s", err, counts(recs))
	}
}

func TestAddressesOfSeveralNodes(t *testing.T) {
	c, err := New(" a:1 , https://b:2/v1,:3", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var got []string
	for _, base := range c.nodes.list {
		got = append(got, base.String())
	}
	if s := strings.Join(got, " "); s != "http://a:1 https://b:2 http://127.0.0.1:3" {
		t.Errorf("addresses %s", s)
	}
	for _, bad := range []string{"a:1,", ",a:1", "a:1,,b:2", ",", "a:1,ftp://b", "a:1,unix:///s", "unix:///s,a:1"} {
		if _, err := New(bad, Options{}); memory.CodeOf(err) != memory.CodeInvalid || memory.AsError(err).Hint == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A call waits for a node that cannot be reached yet, for so long as it was told, and is sent
// once. What a node may have seen is not waited with.
func TestACallWaitsForANodeToBeReached(t *testing.T) {
	dials := func(refused int) (*http.Client, *int) {
		n := 0
		transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if n++; n <= refused {
				return nil, syscall.ECONNREFUSED
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}, &n
	}
	capture := func(c *Client, ctx context.Context) error {
		_, err := c.Capture(ctx, "ns", memory.Capture{Text: "a"}, CaptureOptions{})
		return err
	}
	web, n := dials(3)
	c, recs := cluster(t, Options{HTTPClient: web, ConnectTimeout: time.Minute}, on(reply(one())))
	if err := capture(c, t.Context()); err != nil || *n != 4 || counts(recs) != "1" {
		t.Errorf("%v after %d connections, requests %s", err, *n, counts(recs))
	}
	web, n = dials(1)
	c, recs = cluster(t, Options{HTTPClient: web}, on(reply(one())))
	if err := capture(c, t.Context()); memory.CodeOf(err) != memory.CodeUnavailable || *n != 1 || counts(recs) != "0" {
		t.Errorf("without a time: %v after %d connections, requests %s", err, *n, counts(recs))
	}
	c, recs = cluster(t, Options{ConnectTimeout: time.Minute}, on(lose, reply(memory.ForgetResponse{})))
	if _, err := c.Forget(t.Context(), "ns", "r", WriteOptions{}); memory.CodeOf(err) != memory.CodeOutcomeUnknown || counts(recs) != "1" {
		t.Errorf("a lost answer: %v, requests %s", err, counts(recs))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	web, _ = dials(1 << 30)
	c, _ = cluster(t, Options{HTTPClient: web, ConnectTimeout: time.Hour}, nil)
	if err := capture(c, ctx); err == nil {
		t.Error("what cannot be reached took a call")
	}
}
