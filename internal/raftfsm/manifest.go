package raftfsm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/hashicorp/raft"
)

// manifest describes a snapshot: what raft needs to begin after it, and each
// file with its checksum. On disk and on the wire it is a document (see
// sealDocument) with the magic "MSNP".
type manifest struct {
	// Index and Term are the last log entry that the snapshot stands for.
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	// AppliedIndex and AppliedTerm are the machine's cursor. It may lie below
	// Index: memberships and no-ops are no commands.
	AppliedIndex uint64 `json:"applied_index"`
	AppliedTerm  uint64 `json:"applied_term"`
	// Mark is the machine's, see Machine.Checkpoint.
	Mark      uint64         `json:"mark"`
	ConfIndex uint64         `json:"configuration_index"`
	Servers   []memberServer `json:"servers"`
	Files     []manifestFile `json:"files"`
}

type manifestFile struct {
	Name   string `json:"name"` // slash-separated, relative, clean
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // lower-case hexadecimal
}

func (m *manifest) encode() ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	if len(body) > maxDocumentBytes {
		return nil, fmt.Errorf("encode manifest: %d bytes", len(body))
	}
	return sealDocument(magicManifest, body), nil
}

// decodeManifest checks the document and every field. The error is
// ErrCorruptSnapshot.
func decodeManifest(b []byte) (*manifest, error) {
	body, err := openDocument(magicManifest, b)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w: %w", ErrCorruptSnapshot, err)
	}
	m := new(manifest)
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("manifest: %w: %w", ErrCorruptSnapshot, err)
	}
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("manifest: %w: %w", ErrCorruptSnapshot, err)
	}
	return m, nil
}

func (m *manifest) validate() error {
	if m.Index == 0 || m.Term == 0 || m.AppliedIndex > m.Index || m.ConfIndex > m.Index {
		return fmt.Errorf("indexes %d/%d/%d/%d", m.Index, m.Term, m.AppliedIndex, m.ConfIndex)
	}
	total, seen := int64(0), make(map[string]bool, len(m.Files))
	for _, f := range m.Files {
		if !validName(f.Name) || seen[f.Name] {
			return fmt.Errorf("file name %q", f.Name)
		}
		seen[f.Name] = true
		if f.Size < 0 || f.Size > math.MaxInt64/2-total {
			return fmt.Errorf("file %q: size %d", f.Name, f.Size)
		}
		total += f.Size
		if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != sha256.Size {
			return fmt.Errorf("file %q: checksum %q", f.Name, f.SHA256)
		}
	}
	return nil
}

// validName admits only names that stay below the folder they are joined to, on
// any operating system.
func validName(name string) bool {
	return name != "" && name != "." && name == path.Clean(name) && !strings.HasPrefix(name, "/") &&
		name != ".." && !strings.HasPrefix(name, "../") && !strings.ContainsAny(name, "\\:\x00")
}

// bytes is the sum of the files' sizes.
func (m *manifest) bytes() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// meta is what raft sees. size is the length of the streamed form.
func (m *manifest) meta(id string, size int64) *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: 1, ID: id, Index: m.Index, Term: m.Term,
		Configuration: toConfiguration(m.Servers), ConfigurationIndex: m.ConfIndex, Size: size,
	}
}
