package main

import (
	"archive/tar"
	"encoding/json"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// made says what was made.
type made struct {
	digest    v1.Hash
	platforms []madePlatform
}

type madePlatform struct {
	name       string
	digest     v1.Hash
	compressed int64 // bytes of its layers
}

// writeArchive writes the index as an OCI layout in dir and packs that, always in the same
// order. ref is the whole name, with a tag, under which tools load it.
func writeArchive(index v1.ImageIndex, dir, archive, ref string) (made, error) {
	var m made
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return m, err
	}
	// containerd reads the first name, the others the second.
	err = l.AppendIndex(index, layout.WithAnnotations(map[string]string{"io.containerd.image.name": ref, "org.opencontainers.image.ref.name": ref}))
	if err != nil {
		return m, err
	}
	if m.digest, err = index.Digest(); err != nil {
		return m, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return m, err
	}
	for _, d := range manifest.Manifests {
		size, err := layersSize(index, d.Digest)
		if err != nil {
			return m, err
		}
		m.platforms = append(m.platforms, madePlatform{d.Platform.OS + "/" + d.Platform.Architecture, d.Digest, size})
	}
	return m, replace(archive, func(w io.Writer) error { return pack(w, dir) })
}

func layersSize(index v1.ImageIndex, digest v1.Hash) (total int64, err error) {
	image, err := index.Image(digest)
	if err != nil {
		return 0, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	for _, l := range manifest.Layers {
		total += l.Size
	}
	return total, nil
}

// pack writes the files of dir as a tar archive that is the same for the same files.
func pack(w io.Writer, dir string) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(t, f)
		return err
	})
	if err != nil {
		return err
	}
	return t.Close()
}

// replace writes a file whole or not at all.
func replace(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".release-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it is gone where everything went well
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func writeJSON(path string, v any) error {
	return replace(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
