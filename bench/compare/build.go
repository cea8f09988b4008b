package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are those of one side.
type programs struct{ memnode, memctl string }

// buildBoth builds the programs of a revision, changed by a patch if there is one,
// and of the working tree below dir.
func buildBoth(ctx context.Context, revision, patch, dir string) (base, tree programs, err error) {
	source := filepath.Join(dir, "source")
	if err := checkout(ctx, revision, source); err != nil {
		return base, tree, err
	}
	if patch != "" {
		if err := change(ctx, source, patch); err != nil {
			return base, tree, err
		}
	}
	if base, err = build(ctx, source, filepath.Join(dir, "base")); err != nil {
		return base, tree, err
	}
	top, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return base, tree, fmt.Errorf("find the working tree: %w", err)
	}
	tree, err = build(ctx, strings.TrimSpace(string(top)), filepath.Join(dir, "tree"))
	return base, tree, err
}

func build(ctx context.Context, source, into string) (programs, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", into+string(filepath.Separator), "./cmd/...")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return programs{}, fmt.Errorf("build %s: %w\n%s", source, err, out)
	}
	return programs{memnode: filepath.Join(into, "memnode"), memctl: filepath.Join(into, "memctl")}, nil
}

// change applies a patch to the files in a folder, whatever repository that lies in.
func change(ctx context.Context, source, patch string, options ...string) error {
	patch, err := filepath.Abs(patch)
	if err != nil {
		return err
	}
	if source, err = filepath.Abs(source); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "git", append(append([]string{"apply"}, options...), patch)...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(source))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git apply %s: %w\n%s", patch, err, out)
	}
	return nil
}

// checkout writes the files of a revision into a new folder; the repository does
// not hear of it.
func checkout(ctx context.Context, revision, into string) error {
	cmd := exec.CommandContext(ctx, "git", "archive", "--format=tar", revision)
	archive, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var trouble strings.Builder
	cmd.Stderr = &trouble
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("git archive: %w", err)
	}
	err = extract(archive, into)
	_, _ = io.Copy(io.Discard, archive) // so that git can end
	if ended := cmd.Wait(); ended != nil {
		return fmt.Errorf("git archive %s: %w: %s", revision, ended, strings.TrimSpace(trouble.String()))
	}
	return err
}

func extract(archive io.Reader, into string) error {
	if err := os.Mkdir(into, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the archive: %w", err)
		case h.Typeflag == tar.TypeDir:
			err = root.MkdirAll(h.Name, 0o755)
		case h.Typeflag == tar.TypeReg:
			err = writeFile(root, h.Name, r)
		}
		if err != nil {
			return err
		}
	}
}

func writeFile(root *os.Root, name string, from io.Reader) error {
	f, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
