package verbs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"mneme/internal/peer/devca"
	"mneme/memory"
)

const (
	secretsFile    = "secrets.json"
	secretsVersion = 1
	masterKeyFile  = "master.key"
)

// What the folder of `cluster secrets` holds but for certificates and secretsFile.
var (
	keyFiles       = []string{masterKeyFile, "operator.token"}
	authorityFiles = []string{"ca.crt", "ca.key", filepath.Join("clients", "ca.crt"), filepath.Join("clients", "ca.key")}
)

// secretsFolder is what secretsFile remembers of the calls before: which cluster the folder
// is for, and what its certificates say. It is written once the keys are drawn, so that a
// folder which has it and lacks a key has lost that key.
type secretsFolder struct {
	Version     int      `json:"version"`
	Name        string   `json:"name"`
	Namespace   string   `json:"kube_namespace"`
	Domain      string   `json:"cluster_domain"`
	Hosts       []string `json:"hosts"`
	Nodes       int      `json:"nodes"`
	Days        int      `json:"days"`
	Authorities bool     `json:"authorities"` // they were made
}

// readSecretsFolder returns nil where there is no folder, or one of an earlier version.
func readSecretsFolder(dir string) (*secretsFolder, error) {
	path := filepath.Join(dir, secretsFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var kept secretsFolder
	if err := json.Unmarshal(text, &kept); err != nil || kept.Name == "" || kept.Namespace == "" || kept.Domain == "" || kept.Nodes < 1 || kept.Days < 1 {
		return nil, memory.Errorf(memory.CodeInvalid, "%s cannot be read, or lacks something", path).
			WithHint("put it back as it was; or remove it, and give the flags of the first call again").WithCause(err)
	}
	if kept.Version > secretsVersion {
		return nil, memory.Errorf(memory.CodeInvalid, "%s is of version %d, and this memctl knows version %d", path, kept.Version, secretsVersion).
			WithHint("use the memctl that wrote it, or a later one")
	}
	return &kept, nil
}

// recall takes from the folder what the call does not say, and refuses another cluster.
func (o *secretsOptions) recall(cmd *cobra.Command) error {
	kept, err := readSecretsFolder(o.out)
	if o.kept = kept; err != nil || kept == nil {
		return err
	}
	given := cmd.Flags().Changed
	if given("name") && o.name != kept.Name || given("kube-namespace") && o.namespace != kept.Namespace {
		return memory.Errorf(memory.CodeConflict, "%s is for --name %s --kube-namespace %s, and has that cluster's master key and token", o.out, kept.Name, kept.Namespace).
			WithHint("use another --out for another cluster")
	}
	o.name, o.namespace = kept.Name, kept.Namespace
	if !given("cluster-domain") {
		o.domain = kept.Domain
	}
	if !given("nodes") {
		o.nodes = kept.Nodes
	}
	if !given("days") {
		o.days = kept.Days
	}
	hosts := slices.Clone(kept.Hosts)
	for _, host := range o.hosts {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	o.hosts = hosts
	return nil
}

// whole refuses to go on where a file is lost that would be made anew otherwise, and would
// then be another cluster's.
func (o *secretsOptions) whole() error {
	keys, authorities := missing(o.out, keyFiles), missing(o.out, authorityFiles)
	if o.renew {
		first := filepath.Join("clients", o.name+".crt")
		if len(authorities) == 0 && o.kept == nil && len(missing(o.out, []string{first})) > 0 {
			return memory.Errorf(memory.CodeNotFound, "%s has no certificate of %s to renew", o.out, o.name).
				WithHint("give the --name, --kube-namespace, --host and the rest of the first call once more; they are remembered then")
		}
		if len(authorities) == 0 {
			return nil
		}
		return memory.Errorf(memory.CodeNotFound, "there is no %s, and certificates are renewed from the authorities of the first call", authorities[0]).
			WithHint("find the folder that the first call wrote, and name it with --out; a folder of --keys-only has no authorities")
	}
	made := len(authorities) < len(authorityFiles)
	if o.kept != nil {
		made = o.kept.Authorities
	}
	var lost string
	switch {
	case (made || o.kept != nil) && len(keys) > 0:
		lost = keys[0]
	case made && !o.keysOnly && len(authorities) > 0:
		lost = authorities[0]
	default:
		return nil
	}
	return memory.Errorf(memory.CodeInvalid, "%s was used before, and %s is missing; one that is made anew would be another cluster's", o.out, lost).
		WithHint("put the missing file back, or make new secrets for another cluster with another --out")
}

// missing are the files that dir has not.
func missing(dir string, names []string) []string {
	var out []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			out = append(out, path)
		}
	}
	return out
}

// remember writes what recall takes. Of two first calls at once the first one decides which
// cluster the folder is for.
func (o *secretsOptions) remember(authorities bool) error {
	now := &secretsFolder{secretsVersion, o.name, o.namespace, o.domain, o.hosts, o.nodes, o.days, authorities}
	if o.kept != nil {
		now.Authorities = authorities || o.kept.Authorities
	} else if len(missing(o.out, authorityFiles)) < len(authorityFiles) {
		now.Authorities = true // by an earlier version
	}
	text, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", secretsFile, err)
	}
	text = append(text, '\n')
	path := filepath.Join(o.out, secretsFile)
	if o.kept != nil {
		before, err := os.ReadFile(path)
		if err == nil && bytes.Equal(before, text) {
			return nil
		}
	}
	err = devca.Keep(path, text, o.kept == nil)
	if errors.Is(err, fs.ErrExist) {
		return memory.Errorf(memory.CodeConflict, "another call has just made %s", path).WithHint("call again")
	}
	o.kept = now
	return err
}
