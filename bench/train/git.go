package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// file is one file of a repository.
type file struct {
	path string
	data []byte
}

// repository reads one commit of a bare repository under the folder of mirrors.
type repository struct{ dir, commit string }

// openRepository finds owner/name as owner+name/repo (a git directory), owner+name
// or owner/name, and resolves ref.
func openRepository(mirrors, name, ref string) (repository, error) {
	flat := strings.ReplaceAll(name, "/", "+")
	for _, dir := range []string{
		filepath.Join(mirrors, flat, "repo", ".git"), filepath.Join(mirrors, flat, "repo"),
		filepath.Join(mirrors, flat), filepath.Join(mirrors, name),
	} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if ref == "" {
			ref = "HEAD"
		}
		out, err := exec.Command("git", "-C", dir, "rev-parse", "--verify", ref+"^{commit}").Output()
		if err != nil {
			return repository{}, fmt.Errorf("repository %s: no commit %s: %w", name, ref, err)
		}
		return repository{dir: dir, commit: strings.TrimSpace(string(out))}, nil
	}
	return repository{}, fmt.Errorf("repository %s is not under %s", name, mirrors)
}

// files returns the files whose path match accepts, in the order of paths. Objects
// that the copy lacks are left out.
func (r repository) files(match func(string) bool) ([]file, error) {
	list, err := exec.Command("git", "-C", r.dir, "ls-tree", "-r", "-z", r.commit).Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.dir, err)
	}
	var names, ids []string
	for entry := range strings.SplitSeq(string(list), "\x00") {
		head, name, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(head)
		if ok && len(fields) == 3 && fields[1] == "blob" && match(name) {
			names, ids = append(names, name), append(ids, fields[2])
		}
	}
	cmd := exec.Command("git", "-C", r.dir, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.dir, err)
	}
	return splitBatch(&out, names, len(ids))
}

// splitBatch reads the answers of git cat-file --batch.
func splitBatch(out io.Reader, names []string, n int) ([]file, error) {
	in := bufio.NewReader(out)
	var files []file
	for i := range n {
		head, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(head, " missing\n") {
			continue
		}
		var id, kind string
		var size int
		if _, err := fmt.Sscan(head, &id, &kind, &size); err != nil {
			return nil, fmt.Errorf("object %s: %w", names[i], err)
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(in, data); err != nil {
			return nil, err
		}
		if _, err := in.Discard(1); err != nil {
			return nil, err
		}
		files = append(files, file{path: names[i], data: data})
	}
	return files, nil
}

// matcher returns whether a path fits one of the patterns, in which * stands for
// anything, slashes too.
func matcher(patterns []string) func(string) bool {
	return func(path string) bool {
		for _, p := range patterns {
			if fits(p, path) {
				return true
			}
		}
		return false
	}
}

func fits(pattern, path string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(path, head) {
		return false
	}
	if path = path[len(head):]; !star {
		return path == ""
	}
	if !strings.Contains(rest, "*") {
		return strings.HasSuffix(path, rest)
	}
	for i := range len(path) + 1 {
		if fits(rest, path[i:]) {
			return true
		}
	}
	return false
}
