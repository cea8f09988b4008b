package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// Names of files, as sentence-transformers writes them.
const (
	configFile    = "config.json"
	weightsFile   = "model.safetensors"
	onnxFile      = "model.onnx"
	tokenizerFile = "tokenizer.json"
	vocabFile     = "vocab.txt"
	tokenizerConf = "tokenizer_config.json"
	modulesFile   = "modules.json"
	sentenceConf  = "sentence_bert_config.json"
)

// maxSmallFile bounds every file but the weights; tokenizer.json of a model of
// many languages has 9 MB.
const maxSmallFile = 64 << 20

// files reads a model's directory and remembers what it read.
type files struct {
	dir  fs.FS
	read map[string][sha256.Size]byte // by name
}

// small returns a file's bytes; nil if there is none.
func (f *files) small(name string) ([]byte, error) {
	in, err := f.dir.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{File: name, Detail: "cannot be opened", Err: reason(err)}
	}
	defer in.Close() // it is only read
	b, err := io.ReadAll(io.LimitReader(in, maxSmallFile+1))
	if err != nil {
		return nil, &Error{File: name, Detail: "cannot be read", Err: reason(err)}
	}
	if len(b) > maxSmallFile {
		return nil, wrong(name, "has more than %d MiB", maxSmallFile>>20)
	}
	f.read[name] = sha256.Sum256(b)
	return b, nil
}

// json decodes a file; false if there is none.
func (f *files) json(name string, v any) (bool, error) {
	b, err := f.small(name)
	if err != nil || b == nil {
		return false, err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return true, &Error{File: name, Detail: "is not the JSON that was expected", Err: err}
	}
	return true, nil
}

// tensors reads the wanted tensors of the weights, and all of the file.
func (f *files) tensors(want func(string) bool) (map[string]tensor, error) {
	in, err := f.dir.Open(weightsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, f.noWeights()
	}
	if err != nil {
		return nil, &Error{File: weightsFile, Detail: "cannot be opened", Err: reason(err)}
	}
	defer in.Close() // it is only read
	info, err := in.Stat()
	if err != nil {
		return nil, &Error{File: weightsFile, Detail: "cannot be read", Err: reason(err)}
	}
	if !info.Mode().IsRegular() {
		return nil, wrong(weightsFile, "is not a file")
	}
	sum := sha256.New()
	out, err := readTensors(io.TeeReader(in, sum), info.Size(), want)
	if err != nil {
		return nil, &Error{File: weightsFile, Detail: "is damaged", Hint: "copy or download it again", Err: err}
	}
	f.read[weightsFile] = [sha256.Size]byte(sum.Sum(nil))
	return out, nil
}

// noWeights says which other file is there and what to do about it.
func (f *files) noWeights() error {
	e := wrong(weightsFile, "is missing")
	for _, other := range []string{onnxFile, "onnx/" + onnxFile, "pytorch_model.bin", weightsFile + ".index.json"} {
		if _, err := fs.Stat(f.dir, other); err == nil {
			e.Detail = fmt.Sprintf("is missing; %s is there, which is not read", other)
			break
		}
	}
	e.Hint = "take the model's safetensors file, or write one with sentence-transformers: model.save(DIR, safe_serialization=True)"
	return e
}

// digest is SHA-256 over a line for each file that was read, in the order of
// their names: the file's SHA-256 in hexadecimal, two spaces, its name.
func (f *files) digest() string {
	h := sha256.New()
	for _, name := range sortedNames(f.read) {
		sum := f.read[name]
		_, _ = fmt.Fprintf(h, "%x  %s\n", sum[:], name) // a hash takes all
	}
	return hex.EncodeToString(h.Sum(nil))
}

// reason strips the path, which the caller knows and others need not.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// nameOf is the model's name by its directory. The cache of Hugging Face has
// it two levels up: models--OWNER--NAME/snapshots/REVISION.
func nameOf(dir string) string {
	dir = filepath.Clean(dir)
	if up := filepath.Dir(dir); filepath.Base(up) == "snapshots" {
		if parts := strings.Split(filepath.Base(filepath.Dir(up)), "--"); len(parts) == 3 && parts[0] == "models" {
			return parts[2]
		}
	}
	return filepath.Base(dir)
}
