package verbs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"mneme/memory"
)

// declared is what the files given to `memctl apply` say there should be, in their order.
// What they do not name is none of their business.
type declared struct {
	namespaces []declaredNamespace
}

// declaredNamespace is one namespace as a file declares it. A nil setting is one that should
// have its default.
type declaredNamespace struct {
	name     string
	settings map[string]*string
	where    string // file:line
}

// maxDeclaredBytes bounds a file, so that one given by mistake is refused before it is read.
const maxDeclaredBytes = 1 << 20

// readDeclared reads files, folders of them, and standard input, which is "-". What settings
// may hold is the node's to say.
func readDeclared(paths []string, stdin io.Reader) (declared, error) {
	var out declared
	for _, path := range paths {
		files, err := declaredFiles(path)
		if err != nil {
			return out, err
		}
		for _, file := range files {
			b, err := readBounded(file, stdin)
			if file == "-" {
				file = "standard input"
			}
			if err != nil {
				return out, memory.Errorf(memory.CodeInvalid, "%s cannot be read: %v", file, err)
			}
			if err := out.add(file, b); err != nil {
				return out, err
			}
		}
	}
	if len(out.namespaces) == 0 {
		return out, memory.Errorf(memory.CodeInvalid, "no namespace is declared in %s", strings.Join(paths, ", ")).WithHint("%s", declaredHint)
	}
	return out, nil
}

const declaredHint = "a file looks like `namespaces: [{name: team-a, settings: {search.min_score: 0.3}}]`; `memctl apply --help` has an example"

// declaredFiles lists the YAML and JSON files of a folder, or the one file. Names that
// begin with a dot are left out, among them those in which Kubernetes keeps the versions
// of what it mounts.
func declaredFiles(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%s cannot be read: %v", path, unwrapPath(err))
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%s cannot be read: %v", path, unwrapPath(err))
	}
	var out []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !strings.HasPrefix(e.Name(), ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			out = append(out, filepath.Join(path, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, memory.Errorf(memory.CodeInvalid, "folder %s has no .yaml, .yml or .json file", path)
	}
	return out, nil
}

func unwrapPath(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

func readBounded(file string, stdin io.Reader) (b []byte, err error) {
	r := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, unwrapPath(err)
		}
		defer f.Close()
		r = f
	}
	b, err = io.ReadAll(io.LimitReader(r, maxDeclaredBytes+1))
	if err == nil && len(b) > maxDeclaredBytes {
		err = errors.New("it is larger than 1 MiB")
	}
	return b, unwrapPath(err)
}

// add reads the documents of one file.
func (d *declared) add(file string, b []byte) error {
	dec := yaml.NewDecoder(strings.NewReader(string(b)))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return memory.Errorf(memory.CodeInvalid, "%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if root := doc.Content[0]; root.Tag != "!!null" {
			if err := d.addDocument(file, root); err != nil {
				return err
			}
		}
	}
}

func (d *declared) addDocument(file string, root *yaml.Node) error {
	fields, err := mapping(file, root, "namespaces")
	if err != nil {
		return err
	}
	list := fields["namespaces"]
	if list == nil || list.Tag == "!!null" {
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		return misdeclared(file, list, "namespaces is not a list")
	}
	for _, item := range list.Content {
		ns, err := oneDeclared(file, item)
		if err != nil {
			return err
		}
		for _, have := range d.namespaces {
			if have.name == ns.name {
				return misdeclared(file, item, "namespace %s is declared at %s too", ns.name, have.where)
			}
		}
		d.namespaces = append(d.namespaces, ns)
	}
	return nil
}

func oneDeclared(file string, item *yaml.Node) (declaredNamespace, error) {
	ns := declaredNamespace{settings: map[string]*string{}, where: fmt.Sprintf("%s:%d", file, item.Line)}
	fields, err := mapping(file, item, "name", "settings")
	if err != nil {
		return ns, err
	}
	name := fields["name"]
	if name == nil || name.Kind != yaml.ScalarNode || name.Tag == "!!null" {
		return ns, misdeclared(file, item, "the namespace has no name")
	}
	ns.name = name.Value
	if bad := memory.CheckName("namespace", ns.name); bad != nil {
		return ns, misdeclared(file, name, "%s", bad.Message)
	}
	given := fields["settings"]
	if given == nil || given.Tag == "!!null" {
		return ns, nil
	}
	values, err := mapping(file, given)
	if err != nil {
		return ns, err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		v := values[key]
		if v.Kind != yaml.ScalarNode {
			return ns, misdeclared(file, v, "setting %s is not a plain word", key)
		}
		if v.Tag == "!!null" || v.Value == "" {
			ns.settings[key] = nil
			continue
		}
		value := v.Value
		ns.settings[key] = &value
	}
	return ns, nil
}

// mapping gives the fields of a node by name. With names it takes no others.
func mapping(file string, n *yaml.Node, names ...string) (map[string]*yaml.Node, error) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		return nil, misdeclared(file, n, "here should be fields such as `name: team-a`").WithHint("%s", declaredHint)
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if len(names) > 0 && !slices.Contains(names, key.Value) {
			return nil, misdeclared(file, key, "the field %q is unknown", key.Value).WithHint("the fields here are %s", strings.Join(names, ", "))
		}
		if out[key.Value] != nil {
			return nil, misdeclared(file, key, "%q is given twice", key.Value)
		}
		out[key.Value] = resolved(n.Content[i+1])
	}
	return out, nil
}

func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func misdeclared(file string, n *yaml.Node, format string, args ...any) *memory.Error {
	return memory.Errorf(memory.CodeInvalid, "%s:%d: %s", file, n.Line, fmt.Sprintf(format, args...))
}
