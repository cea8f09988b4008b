package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinksNoNode: what opens data directories is memnode's, down to the last library.
func TestLinksNoNode(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if len(linked) < 100 {
		t.Fatalf("only %d packages: %q", len(linked), linked)
	}
	for _, pkg := range linked {
		for _, heavy := range []string{"mneme/internal/node", "mneme/internal/storage", "mneme/internal/backup", "mneme/internal/keyring", "mneme/cmd/memctl/direct",
			"github.com/cockroachdb/", "github.com/nats-io/", "github.com/hashicorp/", "github.com/minio/", "go.opentelemetry.io/"} {
			if pkg == heavy || strings.HasPrefix(pkg, strings.TrimSuffix(heavy, "/")+"/") {
				t.Errorf("memctl links %s: what needs it belongs behind cmd/memctl/offline; `go mod why %[1]s` shows the way", pkg)
			}
		}
	}
}

// maxSize is how large memctl may be, stripped: it is what somebody downloads to talk to a node. That is
// 25 MB on each platform, and for darwin/amd64, the largest, it has 3.4 % more than for linux/amd64.
const maxSize = 24_150_000

func TestSize(t *testing.T) {
	program := filepath.Join(t.TempDir(), "memctl")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("memctl has %d bytes, and may have %d: `go tool nm -size -sort size` of a build with symbols shows what weighs", info.Size(), maxSize)
	}
}
