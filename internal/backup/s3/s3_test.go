package s3

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"mneme/internal/backup"
	"mneme/internal/backup/placetest"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "the-secret-that-nobody-sees"

// bucket is a server over TLS with a bucket, whose answers a test may spoil.
type bucket struct {
	*httptest.Server
	spoil atomic.Pointer[func(w http.ResponseWriter, r *http.Request, next http.Handler)]
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("memories"); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	b := &bucket{}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=AKID/") {
			t.Errorf("%s %s is not signed", r.Method, r.URL)
		}
		if s := b.spoil.Load(); s != nil {
			(*s)(w, r, fake)
			return
		}
		fake.ServeHTTP(w, r)
	}))
	b.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	b.StartTLS()
	t.Cleanup(b.Close)
	return b
}

func (b *bucket) with(spoil func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	if spoil == nil {
		b.spoil.Store(nil)
		return
	}
	b.spoil.Store(&spoil)
}

func (b *bucket) options() Options {
	return Options{Bucket: "memories", Prefix: "team/a", Endpoint: b.URL, Credentials: Credentials{ID: "AKID", Secret: secret},
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw}), partSize: 5 << 20, tries: 1}
}

func (b *bucket) open(t *testing.T, change func(*Options)) *Place {
	t.Helper()
	opt := b.options()
	if change != nil {
		change(&opt)
	}
	p, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.close() })
	return p
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestBucketIsAPlace(t *testing.T) {
	placetest.Run(t, newBucket(t).open(t, nil))
	placetest.Run(t, newBucket(t).open(t, func(o *Options) { o.Prefix = "" }))
}

// What is longer than a part goes up in parts, and is not there before the last one.
func TestUploadInParts(t *testing.T) {
	b := newBucket(t)
	p := b.open(t, nil)
	long := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
	err := p.Put(t.Context(), "log/a", func(w io.Writer) error {
		if _, err := w.Write(long[:len(long)-1]); err != nil {
			return err
		}
		if files, err := p.List(t.Context(), "log"); err != nil || len(files) > 0 {
			t.Errorf("half a file is listed: %v, %v", files, err)
		}
		_, err := w.Write(long[len(long)-1:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Open(t.Context(), "log/a")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, long) {
		t.Errorf("%d bytes of %d, %v", len(got), len(long), err)
	}
	// One that broke off, and whose parts nobody gave up, is swept.
	broken := errors.New("broken off")
	b.with(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
	err = p.Put(t.Context(), "log/b", func(w io.Writer) error {
		_, err := w.Write(long)
		return errors.Join(err, broken)
	})
	b.with(nil)
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	uploads := func() (n int) {
		for range p.client.ListIncompleteUploads(t.Context(), "memories", "team/a/", true) {
			n++
		}
		return n
	}
	if n := uploads(); n != 1 {
		t.Fatalf("%d uploads are left", n)
	}
	if err := p.Sweep(t.Context(), time.Now().Add(-time.Hour)); err != nil || uploads() != 1 {
		t.Errorf("one that may not have ended was swept: %d are left, %v", uploads(), err)
	}
	if err := p.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil || uploads() != 0 {
		t.Errorf("%d uploads are left, %v", uploads(), err)
	}
}

// Each way in which a bucket refuses has a code and a remedy, and no secret in it.
func TestWhatABucketAnswersIsToldApart(t *testing.T) {
	b := newBucket(t)
	answer := func(status int, code string) func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>no</Message></Error>`, code)
		}
	}
	for name, tt := range map[string]struct {
		spoil  func(w http.ResponseWriter, r *http.Request, next http.Handler)
		change func(*Options)
		code   memory.Code
		hint   string
	}{
		"closed":         {answer(403, "AccessDenied"), nil, memory.CodeForbidden, "credentials"},
		"wrong secret":   {answer(403, "SignatureDoesNotMatch"), nil, memory.CodeForbidden, "credentials"},
		"full":           {answer(507, "XMinioStorageFull"), nil, memory.CodeNoSpace, "prune"},
		"quota":          {answer(400, "XMinioAdminBucketQuotaExceeded"), nil, memory.CodeNoSpace, "prune"},
		"away behind":    {answer(503, "SlowDown"), nil, memory.CodeUnavailable, "reached"},
		"no bucket":      {nil, func(o *Options) { o.Bucket = "nobodys" }, memory.CodeInvalid, "make the bucket nobodys"},
		"away":           {nil, func(o *Options) { o.Endpoint = "https://127.0.0.1:1" }, memory.CodeUnavailable, "reached"},
		"another server": {nil, func(o *Options) { o.CA = nil }, memory.CodeUnavailable, "AWS_CA_BUNDLE"},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.open(t, tt.change)
			b.with(tt.spoil)
			defer b.with(nil)
			_, list := p.List(t.Context(), "log")
			put := p.Put(t.Context(), "log/a", text("content"))
			_, open := p.Open(t.Context(), "log/a")
			for what, err := range map[string]error{"list": list, "put": put, "open": open} {
				if memory.CodeOf(err) != tt.code || !strings.Contains(memory.AsError(err).Hint, tt.hint) || strings.Contains(fmt.Sprint(err), secret) {
					t.Errorf("%s: %v (%s), %q", what, err, memory.CodeOf(err), memory.AsError(err).Hint)
				}
			}
		})
	}
}

// A file that breaks off while it is read is an error of the bucket, and not a short file.
func TestDownloadThatBreaksOff(t *testing.T) {
	b := newBucket(t)
	p := b.open(t, nil)
	if err := p.Put(t.Context(), "log/a", text(strings.Repeat("x", 1000<<10))); err != nil {
		t.Fatal(err)
	}
	b.with(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Length", strconv.Itoa(rec.Body.Len()))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:400<<10])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	defer b.with(nil)
	r, err := p.Open(t.Context(), "log/a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); memory.CodeOf(err) != memory.CodeUnavailable || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestOptionsOfABucket(t *testing.T) {
	b := newBucket(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "credentials")
	if err := os.WriteFile(file, []byte("[default]\naws_access_key_id = AKID\naws_secret_access_key = "+secret+"\n[half]\naws_access_key_id = AKID\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(*Options)
		code   memory.Code // "" = it opens
	}{
		"file":         {func(o *Options) { o.Credentials = Credentials{File: file, Profile: "default"} }, ""},
		"no profile":   {func(o *Options) { o.Credentials = Credentials{File: file, Profile: "none"} }, memory.CodeUnauthenticated},
		"half":         {func(o *Options) { o.Credentials = Credentials{File: file, Profile: "half"} }, memory.CodeUnauthenticated},
		"no file":      {func(o *Options) { o.Credentials = Credentials{File: file + "x", Profile: "default"} }, memory.CodeUnauthenticated},
		"nothing":      {func(o *Options) { o.Credentials = Credentials{} }, memory.CodeUnauthenticated},
		"no secret":    {func(o *Options) { o.Credentials.Secret = "" }, memory.CodeUnauthenticated},
		"plain":        {func(o *Options) { o.Endpoint = "http://s3.example.com" }, memory.CodeInvalid},
		"plain, asked": {func(o *Options) { o.Endpoint, o.Plaintext = "http://s3.example.com", true }, ""},
		"plain, here":  {func(o *Options) { o.Endpoint = "http://127.0.0.1:9000" }, ""},
		"no URL":       {func(o *Options) { o.Endpoint = "s3.example.com" }, memory.CodeInvalid},
		"secret in it": {func(o *Options) { o.Endpoint = "https://AKID:" + secret + "@s3.example.com" }, memory.CodeInvalid},
		"no authority": {func(o *Options) { o.CA = []byte("text") }, memory.CodeInvalid},
	} {
		opt := b.options()
		tt.change(&opt)
		p, err := Open(opt)
		if err == nil {
			defer p.close()
		}
		if (err == nil) != (tt.code == "") || err != nil && memory.CodeOf(err) != tt.code || strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("%s: %v", name, err)
		}
		if s := fmt.Sprintf("%v %+v %#v %s", opt.Credentials, struct{ C Credentials }{opt.Credentials}, opt.Credentials, opt.Credentials); strings.Contains(s, secret) {
			t.Errorf("%s: credentials print: %s", name, s)
		}
		if name == "file" && err == nil {
			if err := p.Put(context.Background(), "log/a", text("x")); err != nil {
				t.Error(err)
			}
		}
	}
}

var _ backup.Place = (*Place)(nil)

// A listing may name what would lie elsewhere once its name is joined with others: it is left
// alone, and nothing is removed for it.
func TestKeysThatLeadElsewhereAreIgnored(t *testing.T) {
	b := newBucket(t)
	p := b.open(t, nil)
	b.with(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
			return
		}
		if r.URL.Query().Has("uploads") {
			_, _ = io.WriteString(w, `<ListMultipartUploadsResult><Bucket>memories</Bucket><Upload><Key>team/a/../../other/x</Key><UploadId>u</UploadId><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload></ListMultipartUploadsResult>`)
			return
		}
		_, _ = io.WriteString(w, `<ListBucketResult><Name>memories</Name>`)
		for _, key := range []string{"team/a/keys/good", "team/a/keys/..", "team/a/keys/../../x", "team/a/keys//x", "team/a/keys/a/../b", "other/keys/x", "team/a/keys/"} {
			_, _ = fmt.Fprintf(w, `<Contents><Key>%s</Key><Size>1</Size><LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>`, key)
		}
		_, _ = io.WriteString(w, `</ListBucketResult>`)
	})
	files, err := p.List(t.Context(), "keys")
	if err != nil || len(files) != 1 || files[0].Name != "keys/good" {
		t.Errorf("%+v, %v", files, err)
	}
	if err := p.Sweep(t.Context(), time.Now()); err != nil {
		t.Error(err)
	}
	for _, prefix := range []string{"pre/../other", "pre//other", "..", "pre/./x"} {
		opt := b.options()
		opt.Prefix = prefix
		if _, err := Open(opt); memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}
