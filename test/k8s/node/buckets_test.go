package node

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"mneme/test/k8s/internal/plane"
)

// buckets are those of the examples, at a store on the node that has an authority of its own.
const buckets = "BACKUP_TO=s3://log@memories/team\nBACKUP_KEYS_TO=s3://keys@safe/team\nAWS_ENDPOINT_URL=https://" + plane.NodeIP +
	"\nAWS_REGION=eu-1\nAWS_CA_BUNDLE=/etc/mneme/bucket/ca.crt\n"

// fromBuckets backs a cluster up into buckets, takes all of it away, its namespace and keys
// too, and restores it.
func (c *cluster) fromBuckets() {
	c.startStore()
	for _, dir := range []string{"examples/backup-bucket", "migrate/to-one-bucket"} {
		c.write("deploy/k8s/"+dir+"/buckets.env", buckets)
	}
	load := c.startLoad("buckets")
	load.wait(500)
	load.end()
	before, answer := c.kept(), c.answer("buckets", "was the number 42 seen")
	if out := c.walk("Backups in buckets"); !strings.Contains(out, "all of the log") {
		c.t.Errorf("the Job said %q", out)
	}
	c.Kubectl("delete", "namespace", "mneme", "--timeout=5m")
	if out := c.walk("Restore a cluster that is lost"); !strings.Contains(out, "restored shard 0: ") {
		c.t.Errorf("the Job said %q", out)
	}
	c.ready(1)
	c.same(before)
	load.whole()
	if after := c.answer("buckets", "was the number 42 seen"); after != answer {
		c.t.Errorf("before all was taken away the search gave %s, and then %s", answer, after)
	}
	c.say("all that was acknowledged is there, and the search gives %s", answer)
}

// startStore runs a small S3 on the node, as it would run elsewhere, and makes the folder of
// what pods need to use it.
func (c *cluster) startStore() {
	c.t.Helper()
	backend := s3mem.New()
	for _, bucket := range []string{"memories", "safe"} {
		if err := backend.CreateBucket(bucket); err != nil {
			c.t.Fatal(err)
		}
	}
	c.script("memctl cluster certs --out store --server store --host " + plane.NodeIP)
	c.write("bucket/credentials", "[log]\naws_access_key_id = A\naws_secret_access_key = a\n[keys]\naws_access_key_id = B\naws_secret_access_key = b\n")
	authority, err := os.ReadFile(filepath.Join(c.folder, "store/clients/ca.crt"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.write("bucket/ca.crt", string(authority))
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.folder, "store/clients/store.crt"), filepath.Join(c.folder, "store/clients/store.key"))
	if err != nil {
		c.t.Fatal(err)
	}
	l, err := tls.Listen("tcp", plane.NodeIP+":443", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	if err != nil {
		c.t.Fatal(err)
	}
	srv := &http.Server{Handler: gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server(), ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	c.t.Cleanup(func() {
		_ = srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			c.t.Error(err)
		}
	})
}
