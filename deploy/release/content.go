package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// user that the programs run as: the one that images call nonroot.
	user = 65532
	// dataDir is where the volume goes.
	dataDir = "/var/lib/mneme"
)

// file of a layer, in the order in which it is written: folders before what is in them.
type file struct {
	path  string // without the slash at the beginning; a folder ends in one
	mode  int64
	owner int
	body  []byte
	link  string // what it leads to; "" = it is no link
}

// base is what every platform has beside the programs.
func base() []file {
	return []file{
		{"etc/", 0o755, 0, nil, ""},
		{"etc/passwd", 0o644, 0, fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nmneme:x:%d:%[1]d:Mneme:%s:/sbin/nologin\n", user, dataDir), ""},
		{"etc/group", 0o644, 0, fmt.Appendf(nil, "root:x:0:\nmneme:x:%d:\n", user), ""},
		{"etc/ssl/", 0o755, 0, nil, ""},
		{"etc/ssl/certs/", 0o755, 0, nil, ""},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, authorities(), ""},
		{"tmp/", 0o1777, 0, nil, ""},
		{"usr/", 0o755, 0, nil, ""},
		{"usr/local/", 0o755, 0, nil, ""},
		{"usr/local/bin/", 0o755, 0, nil, ""},
		{"var/", 0o755, 0, nil, ""},
		{"var/lib/", 0o755, 0, nil, ""},
		{"var/lib/mneme/", 0o700, user, nil, ""},
	}
}

// authorities are those of Mozilla, as golang.org/x/crypto keeps them: a model provider is
// reached over TLS. One that is only good for a part of its certificates is left out.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pemOf(root.Certificate))
		}
	}
	return out.Bytes()
}

// layer packs files, all of one time, and compresses them.
func layer(files []file) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := writeTar(&packed, files, time.Unix(0, 0)); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// makeImage makes the image of one platform.
func makeImage(p platform, src source) (v1.Image, error) {
	body, err := os.ReadFile(p.built[0].path)
	if err != nil {
		return nil, err
	}
	binaries := []file{
		{"usr/local/bin/" + programs[0], 0o755, 0, body, ""},
		{"usr/local/bin/" + programs[1], 0o777, 0, nil, programs[0]},
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, each := range []struct {
		what  string
		files []file
	}{{"base", base()}, {strings.Join(programs, ", "), binaries}} {
		l, err := layer(each.files)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: l, History: v1.History{CreatedBy: "mneme/deploy/release: " + each.what, Created: v1.Time{Time: src.made}}})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: src.made}
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%[1]d", user),
		Env:          []string{"PATH=/usr/local/bin", "HOME=/tmp", "MNEME_DATA_DIR=" + dataDir},
		Entrypoint:   []string{"/usr/local/bin/memnode"},
		WorkingDir:   dataDir,
		Volumes:      map[string]struct{}{dataDir: {}},
		ExposedPorts: map[string]struct{}{"8787/tcp": {}, "4222/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels:       labels(p, src),
	}
	return mutate.ConfigFile(image, config)
}

func labels(p platform, src source) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "Mneme",
		"org.opencontainers.image.description": "A memory for teams of AI agents",
		"org.opencontainers.image.revision":    src.commit,
		"org.opencontainers.image.version":     p.version(),
		"org.opencontainers.image.created":     src.made.Format(time.RFC3339),
	}
}

// makeIndex makes the image of all platforms.
func makeIndex(built []platform, src source) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range built {
		image, err := makeImage(p, src)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", p.name, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}})
	}
	return mutate.Annotations(index, labels(built[0], src)).(v1.ImageIndex), nil
}
