package node

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// programImage makes the image localhost/PROGRAM:dev of one program, such as that of the
// container that keeps a pod's namespaces.
func programImage(t *testing.T, dir, program string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(*programs, program))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	if err := w.WriteHeader(&tar.Header{Name: program, Mode: 0o755, Size: int64(len(body))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Entrypoint = "linux", runtime.GOARCH, []string{"/" + program}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag("localhost/" + program + ":dev")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, program+".tar")
	if err := tarball.WriteToFile(path, ref, image); err != nil {
		t.Fatal(err)
	}
	return path
}
