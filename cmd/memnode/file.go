package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// fileValue is one line of the configuration file.
type fileValue struct {
	name  string
	value any
	line  int
}

// maxFileBytes bounds the configuration file; a log or an image given by
// mistake is refused before it is read.
const maxFileBytes = 1 << 20

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readFile reads a configuration file, in file order. A missing one is nil
// unless it must exist. Errors name the key and its line.
func readFile(path string, must bool, opts []option) ([]fileValue, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !must:
		return nil, nil
	case err != nil:
		return nil, unreadable(path, err)
	case info.IsDir():
		return nil, misuse("", "configuration file %s is a directory", path)
	case info.Size() > maxFileBytes:
		return nil, misuse("", "configuration file %s is larger than 1 MiB", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return parseFile(path, b, opts)
}

func unreadable(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	hint := ""
	if errors.Is(err, syscall.ENOTDIR) {
		hint = "a part of the path is a file: --data-dir names a folder, --config a file in one"
	}
	return misuse(hint, "configuration file %s cannot be read: %v", path, err)
}

// parseFile reads the one mapping of a YAML document.
func parseFile(path string, b []byte, opts []option) ([]fileValue, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, misuse("", "%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	out := []fileValue{}
	if doc.Kind == 0 { // empty, or comments only
		return out, nil
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		return out, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, misuse("write lines such as `http-addr: 127.0.0.1:8787`", "%s:%d: not a list of settings", path, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		v, err := parseLine(path, root.Content[i], root.Content[i+1], opts)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(have fileValue) bool { return have.name == v.name }) {
			return nil, misuse("", "%s:%d: %q is given twice", path, v.line, v.name)
		}
		out = append(out, v)
	}
	return out, nil
}

func parseLine(path string, key, val *yaml.Node, opts []option) (fileValue, error) {
	i := slices.IndexFunc(opts, func(o option) bool { return o.name == key.Value })
	if i < 0 {
		var names []string
		for _, o := range opts {
			if o.settable(fromFile) {
				names = append(names, o.name)
			}
		}
		return fileValue{}, misuse(unknownHint(key.Value, names, "`memnode config` lists the keys"),
			"%s:%d: the key %q is unknown", path, key.Line, key.Value)
	}
	o := opts[i]
	if !o.settable(fromFile) {
		hint := "give --" + o.name
		if o.only == fromEnv {
			hint = "set " + o.variable() + " in the environment"
		}
		return fileValue{}, misuse(hint, "%s:%d: %q cannot be set in a file", path, key.Line, o.name)
	}
	v, err := o.decode(val)
	if err != nil {
		return fileValue{}, misuse("", "%s:%d: %s: %v", path, key.Line, o.name, err)
	}
	return fileValue{name: o.name, value: v, line: key.Line}, nil
}

// decode reads a value as YAML wrote it: the words of a scalar mean the same as
// on the command line, and a list may be a YAML list.
func (o option) decode(n *yaml.Node) (any, error) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, errors.New("the value is missing")
	case n.Kind == yaml.ScalarNode:
		return o.parse(n.Value)
	case n.Kind != yaml.SequenceNode || o.kind != list:
		return nil, errors.New("the value is not a plain word")
	}
	out := []string{}
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d is not a plain word", item.Line)
		}
		out = append(out, item.Value)
	}
	return out, nil
}
