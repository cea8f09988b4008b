package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"mneme/internal/embed/local/localtest"
)

// TestDamagedFiles: each is refused, and the words name the file.
func TestDamagedFiles(t *testing.T) {
	replace := func(file, from, to string) func(map[string][]byte) {
		return func(files map[string][]byte) {
			changed := bytes.Replace(files[file], []byte(from), []byte(to), 1)
			if bytes.Equal(changed, files[file]) {
				panic("nothing was replaced in " + file)
			}
			files[file] = changed
		}
	}
	without := func(names ...string) func(map[string][]byte) {
		return func(files map[string][]byte) {
			for _, name := range names {
				delete(files, name)
			}
		}
	}
	tensors := func(change func(map[string]localtest.Tensor)) func(map[string][]byte) {
		return func(files map[string][]byte) {
			all := localtest.Tiny().Tensors()
			change(all)
			files[weightsFile] = localtest.EncodeTensors(all, "F32", "")
		}
	}
	for name, c := range map[string]struct {
		change func(map[string][]byte)
		words  string
	}{
		"no config":          {without(configFile), "config.json: is missing"},
		"empty config":       {func(f map[string][]byte) { f[configFile] = []byte{} }, "config.json: is not the JSON"},
		"roberta":            {replace(configFile, `"bert"`, `"roberta"`), `model_type is "roberta"`},
		"relative positions": {replace(configFile, `"absolute"`, `"relative_key"`), "position_embedding_type"},
		"relu":               {replace(configFile, `"gelu"`, `"relu"`), "hidden_act"},
		"decoder":            {replace(configFile, `{`, `{"is_decoder":true,`), "decoder"},
		"epsilon":            {replace(configFile, `1e-12`, `0`), "layer_norm_eps"},
		"heads":              {replace(configFile, `"num_attention_heads":4`, `"num_attention_heads":5`), "no multiple"},
		"negative":           {replace(configFile, `"num_hidden_layers":2`, `"num_hidden_layers":-2`), "num_hidden_layers is -2"},
		"huge":               {replace(configFile, `"hidden_size":32`, `"hidden_size":3200000`), "hidden_size is 3200000"},
		"text for a number":  {replace(configFile, `"hidden_size":32`, `"hidden_size":"32"`), "not the JSON"},
		"more layers":        {replace(configFile, `"num_hidden_layers":2`, `"num_hidden_layers":3`), `tensor "encoder.layer.2.attention.self.query.weight" is missing`},
		"fewer layers":       {replace(configFile, `"num_hidden_layers":2`, `"num_hidden_layers":1`), "no place in a BERT of 1 layers"},
		"other size":         {replace(configFile, `"intermediate_size":64`, `"intermediate_size":65`), "has the shape [64 32]"},
		"no tokenizer":       {without(tokenizerFile), "tokenizer.json: is missing"},
		"no weights":         {without(weightsFile), "model.safetensors: is missing"},
		"weights directory": {func(f map[string][]byte) {
			delete(f, weightsFile)
			f[weightsFile+"/x"] = nil
		}, "model.safetensors: is not a file"},
		"onnx only": {func(f map[string][]byte) {
			delete(f, weightsFile)
			f["onnx/model.onnx"] = nil
		}, "onnx/model.onnx is there, which is not read"},
		"cut":             {func(f map[string][]byte) { f[weightsFile] = f[weightsFile][:len(f[weightsFile])-5] }, "model.safetensors: is damaged"},
		"cut header":      {func(f map[string][]byte) { f[weightsFile] = f[weightsFile][:40] }, "model.safetensors: is damaged"},
		"empty weights":   {func(f map[string][]byte) { f[weightsFile] = nil }, "model.safetensors: is damaged"},
		"more at the end": {func(f map[string][]byte) { f[weightsFile] = append(f[weightsFile], 0) }, "model.safetensors: is damaged"},
		"LFS pointer":     {func(f map[string][]byte) { f[weightsFile] = []byte("version https://git-lfs.github.com/spec/v1\n") }, "model.safetensors: is damaged"},
		"NaN": {tensors(func(all map[string]localtest.Tensor) {
			all["encoder.layer.0.output.dense.weight"].Data[3] = float32(math.NaN())
		}), `tensor "encoder.layer.0.output.dense.weight" holds a number that is not finite`},
		"infinity": {tensors(func(all map[string]localtest.Tensor) {
			all["embeddings.word_embeddings.weight"].Data[3] = float32(math.Inf(-1))
		}), "not finite"},
		"missing tensor":    {tensors(func(all map[string]localtest.Tensor) { delete(all, "embeddings.LayerNorm.bias") }), `"embeddings.LayerNorm.bias" is missing`},
		"further tensor":    {tensors(func(all map[string]localtest.Tensor) { all["encoder.layer.0.adapter.weight"] = localtest.Tensor{} }), "adapter"},
		"dense module":      {replace(modulesFile, "models.Normalize", "models.Dense"), `module "Dense"`},
		"elsewhere":         {replace(modulesFile, `"1_Pooling"`, `"../x"`), "leads elsewhere"},
		"transformer below": {replace(modulesFile, `"path":""`, `"path":"0_Transformer"`), "not beside"},
		"no pooling file":   {without("1_Pooling/config.json"), "1_Pooling/config.json: is missing"},
		"two poolings":      {replace("1_Pooling/config.json", `cls_token":false`, `cls_token":true`), `pooling is "cls+mean"`},
		"no pooling":        {replace("1_Pooling/config.json", `mean_tokens":true`, `mean_tokens":false`), `pooling is ""`},
		"pooling by length": {replace("1_Pooling/config.json", `sqrt_len_tokens":false`, `sqrt_len_tokens":true`), "mean_sqrt_len"},
		"pooling's size":    {replace("1_Pooling/config.json", `32`, `33`), "word_embedding_dimension"},
		"without prompts":   {replace("1_Pooling/config.json", `{`, `{"include_prompt":false,`), "include_prompt"},
		"no length":         {replace(sentenceConf, `40`, `2`), "max_seq_length is 2"},
		"modules not JSON":  {func(f map[string][]byte) { f[modulesFile] = []byte("<html>") }, "modules.json: is not the JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			files := localtest.Tiny().Files()
			c.change(files)
			m, err := load(mapFS(files), "tiny")
			var e *Error
			if m != nil || !errors.As(err, &e) || !strings.Contains(err.Error(), c.words) {
				t.Fatalf("error %v, want %q", err, c.words)
			}
		})
	}
}

// TestVariantsThatAreRead: files of other versions that mean the same.
func TestVariantsThatAreRead(t *testing.T) {
	want := embedAll(t, mustLoad(t, localtest.Tiny()), []string{"hello world"})[0]
	old := localtest.Tiny().Files()
	all := map[string]localtest.Tensor{}
	for name, v := range localtest.Tiny().Tensors() {
		name = strings.Replace(strings.Replace(name, "LayerNorm.weight", "LayerNorm.gamma", 1), "LayerNorm.bias", "LayerNorm.beta", 1)
		all[name] = v
	}
	old[weightsFile] = localtest.EncodeTensors(all, "F32", "bert.")
	newer := localtest.Tiny().Files()
	newer["1_Pooling/config.json"] = []byte(`{"embedding_dimension": 32, "pooling_mode": "mean"}`)
	newer["sentence_bert_config.json"] = []byte(`{"max_seq_length": null}`)
	newer["tokenizer_config.json"] = []byte(`{"model_max_length": 1000000000000000019884624838656}`)
	for name, files := range map[string]map[string][]byte{"names of 2018": old, "settings of 2025": newer} {
		m, err := load(mapFS(files), "tiny")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := embedAll(t, m, []string{"hello world"})[0]; !slices.Equal(got, want) {
			t.Errorf("%s: another vector", name)
		}
	}
	m, err := load(mapFS(newer), "tiny")
	if err != nil || m.MaxTokens() != 48 {
		t.Errorf("all positions: %d, %v", m.MaxTokens(), err)
	}
	newer["tokenizer_config.json"] = []byte(`{"model_max_length": 21}`)
	if m, err := load(mapFS(newer), "tiny"); err != nil || m.MaxTokens() != 21 {
		t.Errorf("the tokenizer's length: %v", err)
	}
}

// TestDigest: every file that is read is in it, and nothing else.
func TestDigest(t *testing.T) {
	digest := func(files map[string][]byte) string {
		m, err := load(mapFS(files), "tiny")
		if err != nil {
			t.Fatal(err)
		}
		return m.Digest()
	}
	files := localtest.Tiny().Files()
	want := digest(files)
	lines := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		lines += fmt.Sprintf("%x  %s\n", sha256.Sum256(files[name]), name)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(lines))); want != sum {
		t.Fatalf("digest %s, not %s", want, sum)
	}
	for name := range files {
		changed := maps.Clone(files)
		if name == weightsFile {
			changed[name] = slices.Clone(files[name])
			changed[name][len(changed[name])-1] ^= 1 // in a tensor that is not used
		} else {
			changed[name] = append(slices.Clone(files[name]), '\n')
		}
		if digest(changed) == want {
			t.Errorf("%s is not in the digest", name)
		}
	}
	files["README.md"] = []byte("x")
	if digest(files) != want {
		t.Error("a file that is not read is in the digest")
	}
}

func TestOpenNamesModels(t *testing.T) {
	root := t.TempDir()
	for below, want := range map[string]string{
		"all-MiniLM-L6-v2": "all-MiniLM-L6-v2",
		"models--intfloat--e5-small-v2/snapshots/0123abc": "e5-small-v2",
		"snapshots/x": "x",
	} {
		dir := filepath.Join(root, filepath.FromSlash(below))
		if err := localtest.Write(dir, localtest.Tiny().Files()); err != nil {
			t.Fatal(err)
		}
		m, err := Open(dir)
		if err != nil || m.Name() != want {
			t.Errorf("%s: %v", below, err)
		}
	}
	for dir, words := range map[string]string{
		filepath.Join(root, "none"):                            "no such directory",
		filepath.Join(root, "all-MiniLM-L6-v2", "config.json"): "is a file",
		root: "config.json: is missing",
	} {
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), root) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// brokenFS fails to read one file after some bytes.
type brokenFS struct {
	fs.FS
	name string
}

type brokenFile struct {
	fs.File
	left int
}

func (b brokenFS) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if err == nil && name == b.name {
		f = &brokenFile{f, 10}
	}
	return f, err
}

func (b *brokenFile) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, &fs.PathError{Op: "read", Path: "/secret/path", Err: os.ErrDeadlineExceeded}
	}
	n, err := b.File.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// TestReadErrors: a disk that fails is an error that names the file.
func TestReadErrors(t *testing.T) {
	files := localtest.Tiny().Files()
	for name := range files {
		_, err := load(brokenFS{mapFS(files), name}, "tiny")
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, os.ErrDeadlineExceeded) || e.File != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	denied := mapFS(files)
	for name := range files {
		if _, err := load(deniedFS{denied, name}, "tiny"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s denied: %v", name, err)
		}
	}
}

type deniedFS struct {
	fstest.MapFS
	name string
}

func (d deniedFS) Open(name string) (fs.File, error) {
	if name == d.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.MapFS.Open(name)
}

func TestHalves(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0x0000: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: math.Pow(2, -24), 0x03ff: 1023 * math.Pow(2, -24), 0x0400: math.Pow(2, -14),
		0x3555: 0.333251953125, 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		if got := half(bits); float64(got) != want {
			t.Errorf("%04x: %v, want %v", bits, got, want)
		}
	}
	if x := half(0x7e00); x == x {
		t.Error("no number is a number")
	}
	if x := half(0x8000); x != 0 || !math.Signbit(float64(x)) {
		t.Error("minus zero has no sign")
	}
}

// FuzzTensors: no file makes the reader panic or take more memory than the file
// has, and what is read has the shape that is said.
func FuzzTensors(f *testing.F) {
	small := map[string]localtest.Tensor{"a": {Shape: []int{2, 3}, Data: make([]float32, 6)}, "b": {Shape: []int{}, Data: []float32{1}}}
	for _, kind := range []string{"F32", "F16", "BF16"} {
		f.Add(localtest.EncodeTensors(small, kind, ""))
	}
	for _, header := range []string{
		`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, `{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`,
		`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, `{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`, `{"a":5}`, `[]`,
		`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}}`,
		`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`,
	} {
		f.Add(append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0, 0, 0, 0))
	}
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := readTensors(bytes.NewReader(file), int64(len(file)), func(name string) bool { return name != "skip" })
		if err != nil {
			return
		}
		total := 0
		for name, v := range got {
			n := 1
			for _, d := range v.shape {
				n *= d
			}
			if n != len(v.data) {
				t.Fatalf("%q: shape %v, %d numbers", name, v.shape, len(v.data))
			}
			total += 2 * n
		}
		if total > len(file) {
			t.Fatalf("%d bytes of numbers in a file of %d", total, len(file))
		}
	})
}

// TestRandomDamage flips bytes of the header: the model is refused, or it is the
// same (in "__metadata__" or in what is not used), never another without a sign.
func TestRandomDamage(t *testing.T) {
	files := localtest.Tiny().Files()
	good := mustLoad(t, localtest.Tiny())
	want := embedAll(t, good, []string{"hello world"})[0]
	n := 8 + int(binary.LittleEndian.Uint64(files[weightsFile]))
	seed := uint64(23)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 150 {
		changed := maps.Clone(files)
		b := slices.Clone(files[weightsFile])
		at := rng.IntN(n)
		b[at] ^= byte(1 + rng.IntN(255))
		changed[weightsFile] = b
		m, err := load(mapFS(changed), "tiny")
		if err != nil {
			continue
		}
		if m.Digest() == good.Digest() {
			t.Fatalf("seed %d: byte %d: damage has the same digest", seed, at)
		}
		if got := embedAll(t, m, []string{"hello world"})[0]; !slices.Equal(got, want) && !strings.Contains(string(b), "pooler") {
			t.Fatalf("seed %d: byte %d: another vector", seed, at)
		}
	}
}
