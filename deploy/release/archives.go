package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// archivePlatforms are those that the programs are made for.
var archivePlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// documents are the files of the checkout that every archive has, under share/doc/mneme.
var documents = []string{"LICENSE", "README.md"}

const (
	docDir        = "share/doc/mneme/"
	sumsFile      = "SHA256SUMS"
	installScript = "install.sh"
)

// makeArchives builds the programs for each platform and packs them. An archive has one
// folder, and in it what goes below a prefix such as ~/.local. It returns what was built and
// the names of the archives in out.
func makeArchives(ctx context.Context, dir, work string, src source, opt options) (built []platform, names []string, err error) {
	shared := filepath.Join(work, "pages")
	if err := writePages(ctx, dir, shared, src); err != nil {
		return nil, nil, err
	}
	common, err := filesBelow(shared)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range programs { // go test passes where there is no such test
		page := "share/man/man1/" + name + ".1"
		if !slices.ContainsFunc(common, func(f file) bool { return f.path == page }) {
			return nil, nil, fmt.Errorf("no test wrote %s: see writePages", page)
		}
	}
	for _, name := range documents {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, nil, err
		}
		common = append(common, file{docDir + name, 0o644, 0, body, ""})
	}
	for _, name := range opt.archives {
		p, err := buildArchive(ctx, dir, work, name)
		if err != nil {
			return nil, nil, err
		}
		archive, err := makeArchive(p, common, src, opt.out)
		if err != nil {
			return nil, nil, fmt.Errorf("archive for %s: %w", name, err)
		}
		built, names = append(built, p), append(names, archive)
	}
	return built, names, nil
}

// makeArchive packs the programs of one platform.
func makeArchive(p platform, common []file, src source, out string) (string, error) {
	files := slices.Clone(common)
	for _, b := range p.built {
		body, err := os.ReadFile(b.path)
		if err != nil {
			return "", err
		}
		files = append(files, file{"bin/" + filepath.Base(b.path), 0o755, 0, body, ""})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	name := "mneme-" + p.version() + "-" + p.os + "-" + p.arch
	for i := range files {
		files[i].path = name + "/" + files[i].path
	}
	archive, write := name+".tar.gz", writeTarGz
	if p.os == "windows" {
		archive, write = name+".zip", writeZip
	}
	return archive, replace(filepath.Join(out, archive), func(w io.Writer) error { return write(w, files, src.made) })
}

// filesBelow reads a folder.
func filesBelow(dir string) (files []file, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		body, err := os.ReadFile(path)
		files = append(files, file{filepath.ToSlash(name), 0o644, 0, body, ""})
		return err
	})
	return files, err
}

// writeTarGz packs files, all of one time.
func writeTarGz(w io.Writer, files []file, at time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(z, files, at); err != nil {
		return err
	}
	return z.Close()
}

func writeTar(w io.Writer, files []file, at time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.body)), ModTime: at, Format: tar.FormatUSTAR}
		switch {
		case f.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		case strings.HasSuffix(f.path, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.body); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeZip(w io.Writer, files []file, at time.Time) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: at}
		h.SetMode(fs.FileMode(f.mode))
		entry, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.body); err != nil {
			return err
		}
	}
	return z.Close()
}

// writeSums writes the checksums of files in dir, as sha256sum does. It is also what install.sh
// and memctl update read: the names of the archives say version and platform.
func writeSums(dir string, names []string) error {
	slices.Sort(names)
	var lines strings.Builder
	for _, name := range names {
		sum, err := sumOf(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, name)
	}
	return replace(filepath.Join(dir, sumsFile), func(w io.Writer) error {
		_, err := io.WriteString(w, lines.String())
		return err
	})
}

// sumOf is the SHA-256 of a file, in hexadecimal.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
