package peer

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed vectors/*.cpp vectors/*.h texts/*.cpp
var sources embed.FS

// Vectors compiles the program of the vector indexes below dir.
func Vectors(ctx context.Context, dir string) (bin string, err error) {
	return compile(ctx, dir, "vectors", "libhnswlib-dev and libfaiss-dev", "-fopenmp", "-lfaiss", "-lblas", "-llapack", "-lpthread")
}

// Texts compiles the program of the text indexes below dir.
func Texts(ctx context.Context, dir string) (bin string, err error) {
	return compile(ctx, dir, "texts", "libsqlite3-dev and libxapian-dev", "-lsqlite3", "-lxapian")
}

// compile makes a program of the sources of that name. needs are Debian's packages, for the
// error where they are missing.
func compile(ctx context.Context, dir, name, needs string, libraries ...string) (bin string, err error) {
	dir = filepath.Join(dir, "peer-"+name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	files, err := fs.Glob(sources, name+"/*")
	if err != nil {
		return "", err
	}
	bin = filepath.Join(dir, name)
	args := []string{"-O3", "-march=native", "-std=c++17", "-w", "-o", bin}
	for _, file := range files {
		b, err := sources.ReadFile(file)
		if err != nil {
			return "", err
		}
		at := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(at, b, 0o600); err != nil {
			return "", err
		}
		if filepath.Ext(at) == ".cpp" {
			args = append(args, at)
		}
	}
	if out, err := exec.CommandContext(ctx, "g++", append(args, libraries...)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile with g++, %s: %w: %.300s", needs, err, out)
	}
	return bin, nil
}
