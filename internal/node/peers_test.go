package node

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/cluster"
	"mneme/internal/events"
)

// A folder is a lone node's or a cluster node's for ever: nats-server deletes the streams
// of a folder that is opened as the other kind.
func TestFolderIsOfOneKindOfNode(t *testing.T) {
	ids := events.NewIDSource(time.Now, nil)
	for _, c := range []struct{ first, then, says string }{
		{"", "n1", "belongs to a node on its own"},
		{"n1", "", "belongs to node n1 of a cluster"},
		{"n1", "n2", "belongs to node n1 and not to n2"},
	} {
		path := t.TempDir()
		d, err := openDataDir(vfs.Default, path, c.first, ids, false)
		if err = errors.Join(err, d.close()); err != nil {
			t.Fatal(err)
		}
		if _, err = openDataDir(vfs.Default, path, c.then, ids, false); !strings.Contains(errorText(err), c.says) {
			t.Errorf("%q after %q: %v", c.then, c.first, err)
		}
		if d, err = openDataDir(vfs.Default, path, c.first, ids, false); err != nil {
			t.Errorf("%q again: %v", c.first, err)
			continue
		}
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}
}

func errorText(err error) string {
	var e *StartError
	if errors.As(err, &e) && e.Kind == StartUsage && e.Hint != "" {
		return e.Message
	}
	return ""
}

// What a node knows of its cluster survives, and so does the name that it has there.
func TestFactsOfTheClusterSurvive(t *testing.T) {
	path, ids, fs := t.TempDir(), events.NewIDSource(time.Now, nil), vfs.NewCrashableMem()
	d, err := openDataDir(fs, path, "n1", ids, false)
	if err != nil {
		t.Fatal(err)
	}
	was, err := facts{d}.Load()
	if err != nil || was.ID != "n1" || was.Incarnation == "" || was.Cluster != "" {
		t.Fatalf("a fresh node knows %+v: %v", was, err)
	}
	was.Cluster, was.Founder = "c", true
	was.Members = []cluster.Member{{Name: was.Name(), ID: "n1", Peer: "127.0.0.1:1", Version: 1}}
	if err := errors.Join(facts{d}.Save(was), d.close()); err != nil {
		t.Fatal(err)
	}
	d, err = openDataDir(fs.CrashClone(vfs.CrashCloneCfg{}), path, "n1", ids, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	is, err := facts{d}.Load()
	if err != nil || is.Cluster != "c" || !is.Founder || is.Name() != was.Name() || len(is.Members) != 1 || is.Members[0] != was.Members[0] ||
		d.name() != was.Name() || d.node.ClusterID != "c" {
		t.Errorf("it knew %+v, and knows %+v: %v", was, is, err)
	}
}

func TestClusterOptionsThatCannotWork(t *testing.T) {
	good := ClusterConfig{NodeID: "n1", PeerAddr: "10.0.0.1:8800", RouteAddr: "10.0.0.1:6222", Join: []string{"10.0.0.1:8800"}, Certs: "certs", Expect: 3}
	if err := good.validate(false); err != nil {
		t.Fatal(err)
	}
	everywhere := good
	everywhere.PeerAddr, everywhere.RouteAddr, everywhere.PeerAdvertise, everywhere.RouteAdvertise = "0.0.0.0:8800", ":6222", "n1:8800", "n1:6222"
	if err := everywhere.validate(false); err != nil || everywhere.peer() != "n1:8800" || everywhere.route() != "n1:6222" {
		t.Errorf("it listens everywhere and is reached at %s and %s: %v", everywhere.peer(), everywhere.route(), err)
	}
	four, two := good, good
	four.Expect, two.Expect, two.AllowTwo = 4, 2, true
	if err := errors.Join(four.validate(false), two.validate(false)); err != nil {
		t.Error(err)
	}
	for says, change := range map[string]func(*ClusterConfig){
		"not a valid node":            func(c *ClusterConfig) { c.NodeID = "N 1" },
		"--node-id is missing":        func(c *ClusterConfig) { c.NodeID = "" },
		"--peer-addr is missing":      func(c *ClusterConfig) { c.PeerAddr = "" },
		"--route-addr is missing":     func(c *ClusterConfig) { c.RouteAddr = "" },
		"--join is missing":           func(c *ClusterConfig) { c.Join = nil },
		"--peer-certs is missing":     func(c *ClusterConfig) { c.Certs = "" },
		"is not host:port":            func(c *ClusterConfig) { c.Join = []string{"n2"} },
		"says everywhere":             func(c *ClusterConfig) { c.PeerAddr = "0.0.0.0:8800" },
		`"0.0.0.0:6222" says every`:   func(c *ClusterConfig) { c.RouteAdvertise = "0.0.0.0:6222" },
		"have one address":            func(c *ClusterConfig) { c.RouteAdvertise = c.PeerAddr },
		"one node is no cluster":      func(c *ClusterConfig) { c.Expect = 1 },
		"when either of them is gone": func(c *ClusterConfig) { c.Expect = 2 },
		"of 7 nodes is not supported": func(c *ClusterConfig) { c.Expect = 7 },
	} {
		bad := good
		change(&bad)
		if err := bad.validate(false); !strings.Contains(errorText(err), says) {
			t.Errorf("want %q, got %v", says, err)
		}
	}
	six := good
	six.Expect = 6
	if e := (*StartError)(nil); !errors.As(six.validate(false), &e) || !strings.Contains(e.Hint, "3 or 5; 4 works too") {
		t.Error("the hint leaves out what is taken")
	}
}

// "Remove one" was the remedy also for two nodes, of which neither can be removed.
func TestOfTwoNodesNoneIsToBeRemoved(t *testing.T) {
	if hint := evenVotesHint(2); strings.Contains(hint, "cluster remove") || !strings.Contains(hint, "let a third node join") {
		t.Error(hint)
	}
	if hint := evenVotesHint(4); !strings.Contains(hint, "memctl cluster remove NODE") {
		t.Error(hint)
	}
}

// In a cluster a token that others may read had no hint, and a key that they may read was
// taken without a word.
func TestFilesOfANodeThatOthersMayRead(t *testing.T) {
	if !filePermissions {
		t.Skip("Windows has no such modes")
	}
	cfg := trioOf(t, nil).cfgs[0]
	cfg.FS = nil // modes count on the system's
	token, key := filepath.Join(cfg.DataDir, "keys", "operator.token"), filepath.Join(cfg.Cluster.Certs, "n1.key")
	if err := errors.Join(os.MkdirAll(filepath.Dir(token), 0o700), os.WriteFile(token, []byte("a-token-of-24-characters\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{token, key} {
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		if e := fails(t, cfg, StartUsage); !strings.Contains(e.Message, file) || !strings.Contains(e.Hint, "chmod 600 "+file) {
			t.Errorf("%s; %s", e.Message, e.Hint)
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A new node whose NATS or route port is taken joined the cluster before it found out, and
// stayed a member that does not answer.
func TestNodeWhosePortIsTakenDoesNotJoin(t *testing.T) {
	t.Parallel()
	tr := foundersOf(t, 3, func(_ int, cfg *Config) { cfg.Cluster.Expect, cfg.Cluster.AllowTwo = 2, true })
	var founding sync.WaitGroup
	for i := range 2 {
		founding.Go(func() { tr.open(i) })
	}
	founding.Wait()
	if t.Failed() {
		t.FailNow()
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	for what, take := range map[string]func(*Config){
		"the NATS port":  func(cfg *Config) { cfg.NATSAddr = addr },
		"the route port": func(cfg *Config) { cfg.Cluster.RouteAddr = addr },
	} {
		cfg := tr.cfgs[2]
		own := *cfg.Cluster
		cfg.Cluster = &own
		take(&cfg)
		if e := fails(t, cfg, StartAddress); e.Addr != addr || e.Message != "address "+addr+" is taken" {
			t.Errorf("%s: %+v", what, e)
		}
		for i := range 2 {
			if got := tr.nodes[i].peers.cluster.Facts().Members; len(got) != 2 {
				t.Errorf("%s is taken, and node %d knows %+v", what, i+1, got)
			}
		}
	}
	tr.open(2)
	tr.writes(2, "x", "it has joined once its ports are free")
}
