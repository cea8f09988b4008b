package rest

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"mneme/internal/auth"
	"mneme/memory"
)

const searchPath = "/v1/namespaces/team/search"

// heard reads everything that the server says until it closes the connection.
func heard(t *testing.T, c net.Conn) string {
	t.Helper()
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("%v\n%s", err, answer)
	}
	return string(answer)
}

// TestRefusedBodyThatStopsWasNeverAnswered: the read deadline was lifted after a
// body that had been refused but had not ended, and its rest was waited for.
func TestRefusedBodyThatStopsWasNeverAnswered(t *testing.T) {
	_, srv := live(t, func(o *Options) { o.BodyPause = 300 * time.Millisecond })
	c := slowlyTo(t, srv.Listener.Addr().String(), searchPath, 1<<20+1000, strings.Repeat("x", 1<<20+10))
	if answer := heard(t, c); !strings.Contains(answer, "413 Request Entity Too Large") || !strings.Contains(answer, "Connection: close") {
		t.Errorf("%.300s", answer)
	}
}

// TestUnreadBodyWasWaitedForWithoutEnd: a route that takes no body, and a path
// that is not there, were answered only once the whole body had come.
func TestUnreadBodyWasWaitedForWithoutEnd(t *testing.T) {
	b := newBench(t, func(o *Options) { o.BodyTimeout = 200 * time.Millisecond })
	addr := strings.TrimPrefix(served(t, b, false), "http://")
	for path, want := range map[string]string{"/nowhere": "404 Not Found", "/v1/admin/rebuild": "403 Forbidden"} {
		c := slowlyTo(t, addr, path, 1000, "x")
		if answer := heard(t, c); !strings.Contains(answer, want) {
			t.Errorf("%s: %.300s", path, answer)
		}
	}
}

// TestStreamOutlivesTheDeadlineOfItsBody: a long action that was sent a body was
// not to be cut off when the time for bodies was over.
func TestStreamOutlivesTheDeadlineOfItsBody(t *testing.T) {
	b := newBench(t, func(o *Options) { o.BodyTimeout = 50 * time.Millisecond })
	b.f.long = func(func(done, total uint64)) error { time.Sleep(200 * time.Millisecond); return nil }
	srv := served(t, b, true)
	resp, err := http.Post(srv+"/v1/admin/rebuild", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || !strings.Contains(string(answer), `"result"`) {
		t.Errorf("%v %s", err, answer)
	}
}

// TestStalledBodiesBlockedTheOthers: nine clients that sent 8 MiB less a byte and
// stopped kept every search and capture of more than 512 bytes away, also those
// that came through the admin socket.
func TestStalledBodiesBlockedTheOthers(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxBodies = 1_100_000 })
	url := served(t, b, false)
	for range 2 {
		slowly(t, strings.TrimPrefix(url, "http://"), memory.MaxBatchBytes-1, `{"text":"`+strings.Repeat("x", 600_000))
	}
	eventually(t, "the bodies are not counted", func() bool { return b.s.bodies.used.Load() >= 1_000_000 })
	defer http.DefaultClient.CloseIdleConnections()
	for path, body := range map[string]string{
		searchPath: `{"query":"` + strings.Repeat("x", 10_000) + `"}`,
		eventsPath: `{"agent":"a","text":"` + strings.Repeat("x", 60_000) + `"}`,
	} {
		resp, err := http.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != 200 {
			t.Errorf("%s with %d bytes: %d", path, len(body), resp.StatusCode)
		}
	}
	if rec := b.do("POST", eventsPath, `{"agent":"a","text":"`+strings.Repeat("x", 200_000)+`"}`); rec.Code != 200 {
		t.Errorf("through the admin socket: %d %s", rec.Code, rec.Body)
	}
}

// TestStalledBodyHeldItsBytesForAMinute: a body that stops is given up long
// before the time that a whole one may take.
func TestStalledBodyHeldItsBytesForAMinute(t *testing.T) {
	b := newBench(t, func(o *Options) { o.BodyPause = 200 * time.Millisecond; o.BodyTimeout = time.Minute })
	c := slowly(t, strings.TrimPrefix(served(t, b, false), "http://"), memory.MaxBatchBytes-1, `{"text":"`+strings.Repeat("x", 2<<20))
	if answer := heard(t, c); !strings.Contains(answer, `"code":"timeout"`) {
		t.Errorf("%.300s", answer)
	}
	if held := b.s.bodies.used.Load(); held != 0 {
		t.Errorf("%d bytes are still counted", held)
	}
}

// atOnce gives everything and the end in one read.
type atOnce string

func (a atOnce) Read(p []byte) (int, error) { return copy(p, a), io.EOF }

// TestBodyThatEndedPassedUnchecked: bytes that came together with the end of the
// body were not compared with what all bodies may hold.
func TestBodyThatEndedPassedUnchecked(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxBodies = 1000 })
	r, err := http.NewRequest("POST", eventsPath, atOnce(strings.Repeat("x", freeBody+2000)))
	if err != nil {
		t.Fatal(err)
	}
	body := b.s.newBody(&discard{header: http.Header{}}, r, memory.MaxBatchBytes)
	defer body.release()
	if n, err := body.Read(make([]byte, freeBody+4000)); memory.CodeOf(err) != memory.CodeOverloaded {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// served serves b, as over the admin socket if local is set.
func served(t *testing.T, b *bench, local bool) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if local {
			r = r.WithContext(auth.Local(r.Context()))
		}
		b.s.ServeHTTP(w, r)
	}), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() { _ = srv.Serve(l); close(ended) }()
	t.Cleanup(func() { _ = srv.Close(); <-ended })
	return "http://" + l.Addr().String()
}
