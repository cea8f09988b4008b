package importer

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"mneme/memory"
)

// ExportManifest is the file of an exported folder that says what was written: first
// a line of ExportHead, then one of ManifestFile for each file.
const ExportManifest = ".mneme-export.jsonl"

// ExportHead says what an export held.
type ExportHead struct {
	Version   int           `json:"mneme_export"` // 1
	Namespace string        `json:"namespace"`
	As        string        `json:"as,omitempty"`
	Filter    memory.Filter `json:"filter"`
}

// ManifestFile is a file that an export wrote, and the SHA-256 of what it wrote.
type ManifestFile struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// SumOf is the SHA-256 of a file as a manifest has it.
func SumOf(b []byte) string { return hex.EncodeToString(digest(b)) }

// maxManifestLine bounds a line of a manifest.
const maxManifestLine = 1 << 20

// exportName is how files of an export are called: the month of the record's id, and
// the id. Neither changes when the memory does.
var exportName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{4}-\d{2}/[0-9A-Z]{26}\.md$`) })

// ReadManifest reads the manifest of an exported folder: its head, and the SHA-256 of
// each file. A folder without one is fs.ErrNotExist.
func ReadManifest(dir string) (head ExportHead, files map[string]string, err error) {
	f, err := os.Open(filepath.Join(dir, ExportManifest))
	if errors.Is(err, fs.ErrNotExist) {
		return head, nil, err
	}
	if err != nil {
		return head, nil, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	defer func() { _ = f.Close() }()
	damaged := func(more string) error {
		return memory.Errorf(memory.CodeInvalid, "%s is damaged%s", f.Name(), more).WithHint("export into an empty folder")
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxManifestLine)
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &head) != nil || head.Version != 1 {
		return head, nil, damaged(", or of another version")
	}
	files = map[string]string{}
	for lines.Scan() {
		var file ManifestFile
		if json.Unmarshal(lines.Bytes(), &file) != nil || !exportName().MatchString(file.File) {
			return head, nil, damaged("")
		}
		files[file.File] = file.SHA256
	}
	if lines.Err() != nil {
		return head, nil, damaged(fmt.Sprintf(": %v", lines.Err()))
	}
	return head, files, nil
}

// manifests knows what the exports wrote whose folders are being read.
type manifests map[string]map[string]string // by folder

// wrote is the SHA-256 of what an export wrote as a file, "" where none is known to have.
func (m manifests) wrote(path string) string {
	month := filepath.Dir(path)
	dir := filepath.Dir(month)
	files, known := m[dir]
	if !known {
		_, files, _ = ReadManifest(dir) // one that cannot be read shows nothing
		m[dir] = files
	}
	return files[filepath.Base(month)+"/"+filepath.Base(path)]
}
