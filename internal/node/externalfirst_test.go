package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/eventlog"
	"mneme/internal/eventlog/natstest"
	"mneme/internal/events"
)

// A bad external NATS was refused once the cluster was founded: the data directories were
// of a cluster by then, and another NATS did not help.
func TestBadExternalNATSIsRefusedBeforeTheCluster(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	tr := trioOf(t, func(_ int, cfg *Config) {
		outside(s, cfg)
		cfg.External.Replicas = 1
	})
	ofNoCluster := func(i int) {
		t.Helper()
		cfg := tr.cfgs[i]
		d, err := openDataDir(cfg.FS, cfg.DataDir, cfg.Cluster.NodeID, events.NewIDSource(cfg.Now, nil), false)
		if err != nil {
			t.Fatal(err)
		}
		known, err := facts{d}.Load()
		if err = errors.Join(err, d.close()); err != nil || known.Cluster != "" || known.Members != nil {
			t.Errorf("%s knows %+v: %v", cfg.Cluster.NodeID, known, err)
		}
	}
	for _, c := range []struct {
		old, now string
		replicas int
		says     string
	}{
		{"    jetstream: enabled\n", "", 1, "no JetStream"},
		{"sync_interval: always", "sync_interval: 1m", 1, "log-1"},
		{"", "", 3, "single server"},
	} {
		s.Stop(0)
		s.Up(t, 0, c.old, c.now)
		cfg := tr.cfgs[0]
		cfg.External.Replicas = c.replicas
		if e := fails(t, cfg, StartUnreachable); !strings.Contains(e.Message, c.says) || e.Hint == "" {
			t.Errorf("%s, hint %q; want %q", e.Message, e.Hint, c.says)
		}
		ofNoCluster(0)
	}

	// Without a server that says whether it syncs a node would wait for ever.
	cfg := tr.cfgs[0]
	cfg.External.Monitors, cfg.External.SystemURL = nil, ""
	if e := fails(t, cfg, StartUnreachable); !strings.Contains(e.Message, "nobody to ask") || !strings.Contains(e.Hint, "--nats-monitor") {
		t.Errorf("%s, hint %q", e.Message, e.Hint)
	}
	ofNoCluster(0)

	// Another Mneme has the account: they hear it when they are to found a cluster.
	s.Stop(0)
	s.Up(t, 0, "", "")
	r, err := eventlog.OpenExternal(t.Context(), eventlog.RemoteOptions{URL: s.URL(), MonitorURLs: s.Monitors})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	other := eventlog.StreamConfig{ClusterID: "another", Replicas: 1, Ref: events.StreamRef{Identity: "another"}}
	if _, err := eventlog.OpenStream(t.Context(), r.Conn(), other); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := make([]error, len(tr.cfgs))
	var opening sync.WaitGroup
	for i := range tr.cfgs {
		opening.Go(func() {
			defer cancel() // the others wait for the one that is to found
			_, errs[i] = Open(ctx, tr.cfgs[i])
		})
	}
	opening.Wait()
	for i, err := range errs {
		if err == nil {
			t.Fatalf("node %d started", i+1)
		}
		ofNoCluster(i)
	}
	if err := errors.Join(errs...); !errors.Is(err, eventlog.ErrOtherCluster) {
		t.Errorf("want %v, got %v", eventlog.ErrOtherCluster, err)
	}

	js, err := jetstream.New(r.Conn())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), events.StreamName(shard0, 0)); err != nil {
		t.Fatal(err)
	}
	tr.openAll()
	tr.writes(0, "after", "a memory of the harbour")
}

// Files by which the node proves to an external NATS who it is were taken where others
// could read them.
func TestFilesForAnExternalNATSThatOthersMayRead(t *testing.T) {
	if !filePermissions {
		t.Skip("Windows has no such modes")
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, access := range map[string]NATSAccess{"credentials": {Creds: file}, "seed": {NKey: file}, "key": {Cert: "/nowhere/n.crt", Key: file}} {
		for mode, refused := range map[os.FileMode]bool{0o644: true, 0o620: true, 0o600: false, 0o640: false} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			cfg := quiet(t.TempDir())
			cfg.NATSURL, cfg.External.Access = "nats://127.0.0.1:1", access
			_, err := Open(t.Context(), cfg)
			var e *StartError
			if !errors.As(err, &e) || strings.Contains(e.Message, "hush") {
				t.Fatalf("%s: %v", what, err)
			}
			if got := e.Kind == StartUsage && strings.Contains(e.Hint, "chmod 600 "+file); got != refused {
				t.Errorf("%s of mode %o: %s, hint %q", what, mode, e.Message, e.Hint)
			}
		}
	}
}
