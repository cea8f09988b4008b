package node

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"time"

	"mneme/memory"
)

// bundleFormat is the version of what a bundle holds.
const bundleFormat = 1

// bundleAbout is the first file of a bundle.
const bundleAbout = `This is what one node of Mneme said of itself, for a report about it (format %d, %s).

version.json     program, Go, system
settings.json    the settings in effect and where each came from, without secrets
status.json      node, shards, vectors, certificates
cluster.json     nodes and replicas, as this node sees them
doctor.json      the findings of memctl doctor
metrics.txt      /metrics
log.txt          the last lines of the log, without queries
goroutines.txt   what the process does
heap.pb.gz       what memory is used for (go tool pprof)

It holds no memory, no query, no key, no token and no password. It does hold addresses, paths
of files and names of namespaces.
`

// DebugBundle implements rest.Admin.
func (o *operator) DebugBundle(ctx context.Context, w io.Writer) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	now := o.n.cfg.Now()
	for _, part := range o.bundle(ctx) {
		b, err := part.read()
		if err != nil { // a report about a node that is unwell is wanted all the same
			b = []byte("this could not be read: " + err.Error() + "\n")
		}
		if err := archive.WriteHeader(&tar.Header{Name: "mneme-debug/" + part.name, Mode: 0o600, Size: int64(len(b)), ModTime: now}); err != nil {
			return err
		}
		if _, err := archive.Write(b); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zipped.Close()
}

// bundlePart is one file of a bundle.
type bundlePart struct {
	name string
	read func() ([]byte, error)
}

func (o *operator) bundle(ctx context.Context) []bundlePart {
	asJSON := func(read func() (any, error)) func() ([]byte, error) {
		return func() ([]byte, error) {
			v, err := read()
			if err != nil {
				return nil, err
			}
			b, err := json.MarshalIndent(v, "", "  ")
			return append(b, '\n'), err
		}
	}
	told := func(of func() any) func() (any, error) {
		return func() (any, error) {
			if of == nil {
				return "the program that runs the node does not say", nil
			}
			return of(), nil
		}
	}
	version := memory.VersionInfo{Version: o.n.cfg.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	return []bundlePart{
		{"README.txt", func() ([]byte, error) {
			return fmt.Appendf(nil, bundleAbout, bundleFormat, o.n.cfg.Now().UTC().Format(time.RFC3339)), nil
		}},
		{"version.json", asJSON(func() (any, error) { return version, nil })},
		{"settings.json", asJSON(told(o.n.cfg.Process.Settings))},
		{"status.json", asJSON(func() (any, error) { return o.Status(ctx, false) })},
		{"cluster.json", asJSON(func() (any, error) { return o.Cluster(ctx) })},
		{"doctor.json", asJSON(func() (any, error) { return o.Doctor(ctx) })},
		{"metrics.txt", func() ([]byte, error) { return answerOf(ctx, o.n.front.metrics) }},
		{"log.txt", func() ([]byte, error) {
			if o.n.cfg.Process.Log == nil {
				return []byte("the program that runs the node keeps none\n"), nil
			}
			return o.n.cfg.Process.Log(), nil
		}},
		{"goroutines.txt", func() ([]byte, error) { return profileOf("goroutine", 1) }},
		{"heap.pb.gz", func() ([]byte, error) { return profileOf("heap", 0) }},
	}
}

func profileOf(kind string, debug int) ([]byte, error) {
	var b bytes.Buffer
	err := pprof.Lookup(kind).WriteTo(&b, debug)
	return b.Bytes(), err
}

// answerOf is what a handler answers to a plain GET.
func answerOf(ctx context.Context, h http.Handler) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return nil, err
	}
	page := &page{header: http.Header{}}
	h.ServeHTTP(page, r)
	return page.Bytes(), nil
}

// page keeps an answer. It implements http.ResponseWriter.
type page struct {
	bytes.Buffer
	header http.Header
}

func (p *page) Header() http.Header { return p.header }
func (p *page) WriteHeader(int)     {}

// Profile implements rest.Admin.
func (o *operator) Profile(ctx context.Context, w io.Writer, kind string, seconds int) error {
	var stop func()
	switch kind {
	case "cpu":
		if err := pprof.StartCPUProfile(w); err != nil {
			return busyProfile(kind, err)
		}
		stop = pprof.StopCPUProfile
	case "trace":
		if err := trace.Start(w); err != nil {
			return busyProfile(kind, err)
		}
		stop = trace.Stop
	default:
		p := pprof.Lookup(kind)
		if p == nil {
			return memory.Errorf(memory.CodeNotFound, "there is no profile %q", kind)
		}
		return p.WriteTo(w, 0)
	}
	defer stop()
	return sleep(ctx, time.Duration(seconds)*time.Second)
}

func busyProfile(kind string, err error) error {
	return memory.Errorf(memory.CodeConflict, "a %s profile cannot be taken: %v", kind, err).WithHint("another one is being taken; try again when it is over")
}
