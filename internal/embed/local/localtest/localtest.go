// Package localtest makes small BERT models with random weights, in the files
// that real ones have, for tests that need a model and may not download one.
package localtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Spec says what to make. Seed and sizes give the same bytes everywhere.
type Spec struct {
	Seed                             uint64
	Layers, Hidden, Heads, Inner     int
	Positions, MaxTokens             int
	Pieces                           []string // the vocabulary
	Activation, Pooling, NumberKind  string   // "gelu"; "cls", "mean" or "max"; "F32", "F16" or "BF16"
	VocabularyFile, NoModules, Cased bool     // vocab.txt instead of tokenizer.json; a bare BERT; keeps case and accents
	TensorPrefix                     string
}

// Tiny is a BERT of 2 layers that knows about 100 pieces, among them every
// ASCII letter and digit, so that most words are not unknown.
func Tiny() Spec {
	return Spec{
		Seed: 1, Layers: 2, Hidden: 32, Heads: 4, Inner: 64, Positions: 48, MaxTokens: 40,
		Pieces: tinyPieces(), Activation: "gelu", Pooling: "mean", NumberKind: "F32",
	}
}

// MiniLM has the sizes of all-MiniLM-L6-v2.
func MiniLM() Spec {
	s := Tiny()
	s.Layers, s.Hidden, s.Heads, s.Inner, s.Positions, s.MaxTokens = 6, 384, 12, 1536, 512, 256
	for len(s.Pieces) < 30522 {
		s.Pieces = append(s.Pieces, fmt.Sprintf("[unused%d]", len(s.Pieces)))
	}
	return s
}

func tinyPieces() []string {
	pieces := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
	for r := 'a'; r <= 'z'; r++ {
		pieces = append(pieces, string(r), "##"+string(r))
	}
	for r := '0'; r <= '9'; r++ {
		pieces = append(pieces, string(r), "##"+string(r))
	}
	return append(pieces, "!", ",", ".", "$", "'", "\"", "<", ">", "&", "-", "日", "本", "語", "の", "テ", "##キスト",
		"un", "##aff", "##able", "cafe", "hello", "world", "the", "##ing", "text", "number", "ı", "##ı")
}

// Tensor is a row-major array.
type Tensor struct {
	Shape []int
	Data  []float32 // as they are after rounding to NumberKind
}

// Tensors returns the weights by their names without prefix.
func (s Spec) Tensors() map[string]Tensor {
	rng := rand.New(rand.NewPCG(s.Seed, 2))
	out := map[string]Tensor{}
	add := func(name string, mean, spread float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = s.round(float32(mean + spread*rng.NormFloat64()))
		}
		out[name] = Tensor{shape, data}
	}
	linear := func(name string, to, from int) {
		add(name+".weight", 0, 1.5/math.Sqrt(float64(from)), to, from)
		add(name+".bias", 0, 0.2, to)
	}
	layerNorm := func(name string) {
		add(name+".weight", 1, 0.2, s.Hidden)
		add(name+".bias", 0, 0.2, s.Hidden)
	}
	add("embeddings.word_embeddings.weight", 0, 1, len(s.Pieces), s.Hidden)
	add("embeddings.position_embeddings.weight", 0, 0.5, s.Positions, s.Hidden)
	add("embeddings.token_type_embeddings.weight", 0, 0.5, 2, s.Hidden)
	layerNorm("embeddings.LayerNorm")
	for i := range s.Layers {
		in := fmt.Sprintf("encoder.layer.%d.", i)
		for _, part := range []string{"query", "key", "value"} {
			linear(in+"attention.self."+part, s.Hidden, s.Hidden)
		}
		linear(in+"attention.output.dense", s.Hidden, s.Hidden)
		layerNorm(in + "attention.output.LayerNorm")
		linear(in+"intermediate.dense", s.Inner, s.Hidden)
		linear(in+"output.dense", s.Hidden, s.Inner)
		layerNorm(in + "output.LayerNorm")
	}
	linear("pooler.dense", s.Hidden, s.Hidden) // which embedders leave out
	return out
}

// round cuts a number to what NumberKind can hold, toward zero.
func (s Spec) round(x float32) float32 {
	switch s.NumberKind {
	case "BF16":
		return math.Float32frombits(math.Float32bits(x) &^ 0xffff)
	case "F16":
		if math.Abs(float64(x)) < 1.0/(1<<14) {
			return 0
		}
		return math.Float32frombits(math.Float32bits(x) &^ 0x1fff)
	}
	return x
}

// Files returns the model's files by their slash-separated names.
func (s Spec) Files() map[string][]byte {
	files := map[string][]byte{
		"config.json": encode(map[string]any{
			"architectures": []string{"BertModel"}, "model_type": "bert", "hidden_act": s.Activation, "hidden_size": s.Hidden,
			"intermediate_size": s.Inner, "layer_norm_eps": 1e-12, "max_position_embeddings": s.Positions, "num_attention_heads": s.Heads,
			"num_hidden_layers": s.Layers, "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": len(s.Pieces),
		}),
		"model.safetensors": EncodeTensors(s.Tensors(), s.NumberKind, s.TensorPrefix),
	}
	if s.VocabularyFile {
		files["vocab.txt"] = []byte(strings.Join(s.Pieces, "\n") + "\n")
		files["tokenizer_config.json"] = encode(map[string]any{"do_lower_case": !s.Cased, "tokenize_chinese_chars": true, "model_max_length": s.MaxTokens})
	} else {
		files["tokenizer.json"] = s.tokenizer()
	}
	if s.NoModules {
		return files
	}
	files["modules.json"] = encode([]map[string]any{
		{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
		{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
		{"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
	})
	files["1_Pooling/config.json"] = encode(map[string]any{
		"word_embedding_dimension": s.Hidden, "pooling_mode_cls_token": s.Pooling == "cls",
		"pooling_mode_mean_tokens": s.Pooling == "mean", "pooling_mode_max_tokens": s.Pooling == "max", "pooling_mode_mean_sqrt_len_tokens": false,
	})
	files["sentence_bert_config.json"] = encode(map[string]any{"max_seq_length": s.MaxTokens, "do_lower_case": false})
	return files
}

func (s Spec) tokenizer() []byte {
	vocabulary := map[string]int{}
	for i, piece := range s.Pieces {
		vocabulary[piece] = i
	}
	return encode(map[string]any{
		"version":       "1.0",
		"normalizer":    map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": !s.Cased},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
		"decoder":       map[string]any{"type": "WordPiece", "prefix": "##", "cleanup": true},
		"model": map[string]any{
			"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary,
		},
	})
}

// EncodeTensors writes a safetensors file, tensors in the order of their names.
func EncodeTensors(tensors map[string]Tensor, kind, prefix string) []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		t, from := tensors[name], len(data)
		for _, x := range t.Data {
			bits := math.Float32bits(x)
			switch kind {
			case "BF16":
				data = binary.LittleEndian.AppendUint16(data, uint16(bits>>16))
			case "F16":
				data = binary.LittleEndian.AppendUint16(data, half(bits))
			default:
				data = binary.LittleEndian.AppendUint32(data, bits)
			}
		}
		header[prefix+name] = map[string]any{"dtype": kind, "shape": t.Shape, "data_offsets": []int{from, len(data)}}
	}
	head := encode(header)
	for len(head)%8 != 0 {
		head = append(head, ' ') // as the format's own writer aligns it
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), data...)
}

// half is exact for numbers that Spec.round made.
func half(bits uint32) uint16 {
	sign := uint16(bits >> 16 & 0x8000)
	if bits<<1 == 0 {
		return sign
	}
	return sign | uint16((bits>>23&0xff)-127+15)<<10 | uint16(bits>>13&0x3ff)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only maps, lists and numbers are encoded here
	}
	return b
}

// Write writes files below dir.
func Write(dir string, files map[string][]byte) error {
	for name, b := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return err
		}
	}
	return nil
}
