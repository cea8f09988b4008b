package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// maxCompressed is how large the image of one platform may be.
const maxCompressed = 40_000_000

// checkImage: what is in the image is what runs in a pod that may do nothing.
func checkImage(t *testing.T, first string) {
	index := unpack(t, filepath.Join(first, "mneme.oci.tar"))
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("manifests: %+v", manifest.Manifests)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/memnode"}) || c.StopSignal != "SIGTERM" {
		t.Errorf("configuration: %+v", c)
	}
	if m, err := image.Manifest(); err != nil || m.Config.MediaType != types.OCIConfigJSON || m.Layers[0].MediaType != types.OCILayer {
		t.Errorf("manifest: %+v, %v", m, err)
	}
	if size, err := layersSize(index, manifest.Manifests[0].Digest); err != nil || size > maxCompressed {
		t.Errorf("%d bytes compressed, %v; %d are allowed", size, err, maxCompressed)
	}
	checkFiles(t, files(t, image))
	checkPapers(t, first, manifest.Manifests[0].Digest, config.Config.Labels["org.opencontainers.image.revision"])
}

// unpack reads an archive and returns the image that its index.json names.
func unpack(t *testing.T, archive string) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, e := range entries(t, f) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, e.body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := outer.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("index.json: %+v, %v", m, err)
	}
	if name := m.Manifests[0].Annotations["io.containerd.image.name"]; !strings.HasPrefix(name, "localhost/mneme:") || strings.ContainsAny(name, "+()") {
		t.Errorf("containerd would call it %q", name)
	}
	index, err := outer.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

type entry struct {
	header *tar.Header
	body   []byte
}

func entries(t *testing.T, r io.Reader) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	for reader := tar.NewReader(r); ; {
		h, err := reader.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = entry{h, body}
	}
}

// files are those of all layers.
func files(t *testing.T, image v1.Image) map[string]entry {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]entry{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for name, e := range entries(t, r) {
			out[name] = e
		}
		r.Close()
	}
	return out
}

func checkFiles(t *testing.T, files map[string]entry) {
	t.Helper()
	if h := files["var/lib/mneme/"].header; h == nil || h.Uid != user || h.Mode != 0o700 {
		t.Errorf("data directory: %+v", h)
	}
	if n := bytes.Count(files["etc/ssl/certs/ca-certificates.crt"].body, []byte("BEGIN CERTIFICATE")); n < 50 {
		t.Errorf("%d authorities", n)
	}
	for name, e := range files {
		if e.header.Mode&0o6000 != 0 || e.header.Mode&0o022 != 0 && name != "tmp/" && e.header.Typeflag != tar.TypeSymlink {
			t.Errorf("%s has mode %o", name, e.header.Mode)
		}
	}
	for _, name := range programs {
		found := files["usr/local/bin/"+name]
		if found.header.Typeflag == tar.TypeSymlink {
			found = files["usr/local/bin/"+found.header.Linkname]
		}
		body := found.body
		binary, err := elf.NewFile(bytes.NewReader(body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if libraries, err := binary.ImportedLibraries(); len(libraries) > 0 || binary.Section(".interp") != nil {
			t.Errorf("%s is not static: %v, %v", name, libraries, err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, body, 0o755); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "linux" {
			continue
		}
		if out, err := exec.Command(path, "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), name) {
			t.Errorf("%s version: %v: %s", name, err, out)
		}
		if name != "memctl" {
			continue
		}
		alone := exec.Command(path, "nats-config") // which needs what memnode has in it
		alone.Env = []string{}
		if out, err := alone.CombinedOutput(); err != nil || !strings.Contains(string(out), "sync_interval: always") {
			t.Errorf("memctl nats-config: %v: %s", err, out)
		}
	}
}

func checkPapers(t *testing.T, dir string, image v1.Hash, commit string) {
	t.Helper()
	var bom cdx.BOM
	readJSON(t, filepath.Join(dir, "mneme.cdx.json"), &bom)
	if bom.Components == nil || !slices.ContainsFunc(*bom.Components, func(c cdx.Component) bool {
		return c.Name == "github.com/nats-io/nats-server/v2" && strings.HasPrefix(c.PackageURL, "pkg:golang/github.com/nats-io/nats-server/v2@v2.")
	}) {
		t.Error("the SBOM does not list the embedded server")
	}
	var s statement
	readJSON(t, filepath.Join(dir, "mneme.provenance.json"), &s)
	if len(s.Subject) != 2 || s.Subject[1].Digest["sha256"] != image.Hex {
		t.Errorf("the provenance is of %+v", s.Subject)
	}
	deps := s.Predicate.BuildDefinition.ResolvedDependencies
	if len(deps) < 50 || deps[0].Digest["gitCommit"] != commit || len(commit) != 40 {
		t.Errorf("%d dependencies, commit %q", len(deps), commit)
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
