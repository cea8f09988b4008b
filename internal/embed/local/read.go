package local

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// config is what is used of config.json.
type config struct {
	ModelType string `json:"model_type"`

	Vocabulary int `json:"vocab_size"`
	Hidden     int `json:"hidden_size"`
	Layers     int `json:"num_hidden_layers"`
	Heads      int `json:"num_attention_heads"`
	Inner      int `json:"intermediate_size"`
	Positions  int `json:"max_position_embeddings"`
	Kinds      int `json:"type_vocab_size"`

	Epsilon      float64 `json:"layer_norm_eps"`
	Activation   string  `json:"hidden_act"`
	PositionType string  `json:"position_embedding_type"`
	IsDecoder    bool    `json:"is_decoder"`
}

func readConfig(f *files) (config, error) {
	c := config{Epsilon: 1e-12, Activation: "gelu", PositionType: "absolute", Kinds: 2}
	found, err := f.json(configFile, &c)
	if err != nil {
		return c, err
	}
	if !found {
		return c, &Error{File: configFile, Detail: "is missing", Hint: "name the directory of a BERT-family model, with " + configFile + ", " + weightsFile + " and " + tokenizerFile}
	}
	if c.ModelType != "bert" {
		return c, &Error{File: configFile, Detail: fmt.Sprintf("model_type is %q; only bert is run here", clip(c.ModelType)),
			Hint: "take a model of that architecture, e.g. all-MiniLM-L6-v2, bge-small-en-v1.5 or e5-small-v2, or serve this one with Ollama or a server that speaks the OpenAI protocol"}
	}
	for _, n := range []struct {
		name          string
		value, lo, hi int
	}{
		{"vocab_size", c.Vocabulary, 1, 1 << 21},
		{"hidden_size", c.Hidden, 1, 16384},
		{"num_hidden_layers", c.Layers, 1, 256},
		{"num_attention_heads", c.Heads, 1, 256},
		{"intermediate_size", c.Inner, 1, 1 << 17},
		{"max_position_embeddings", c.Positions, 3, 1 << 17},
		{"type_vocab_size", c.Kinds, 1, 1 << 10},
	} {
		if n.value < n.lo || n.value > n.hi {
			return c, wrong(configFile, "%s is %d, not in %d..%d", n.name, n.value, n.lo, n.hi)
		}
	}
	switch {
	case c.Hidden%c.Heads != 0:
		return c, wrong(configFile, "hidden_size %d is no multiple of num_attention_heads %d", c.Hidden, c.Heads)
	case c.PositionType != "absolute":
		return c, wrong(configFile, "position_embedding_type is %q; only absolute is run here", clip(c.PositionType))
	case newGate(c.Activation) == nil:
		return c, wrong(configFile, "hidden_act is %q; gelu, gelu_new, gelu_fast and gelu_pytorch_tanh are run here", clip(c.Activation))
	case c.IsDecoder:
		return c, wrong(configFile, "the model is a decoder")
	case !(c.Epsilon > 0 && c.Epsilon < 1):
		return c, wrong(configFile, "layer_norm_eps is %g", c.Epsilon)
	}
	return c, nil
}

// readPooling follows modules.json: a transformer, its pooling, perhaps
// normalisation, which callers do anyway. Without it the mean is taken.
func readPooling(f *files, hidden int) (pooling, error) {
	var modules []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	found, err := f.json(modulesFile, &modules)
	if err != nil || !found {
		return poolMean, err
	}
	pool := poolMean
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer":
			if m.Path != "" && m.Path != "." {
				return pool, wrong(modulesFile, "the transformer is in %q, not beside this file", clip(m.Path))
			}
		case "Normalize":
		case "Pooling":
			if pool, err = readPoolingConfig(f, m.Path, hidden); err != nil {
				return pool, err
			}
		default:
			return pool, wrong(modulesFile, "module %q is not run here; Transformer, Pooling and Normalize are", clip(kind))
		}
	}
	return pool, nil
}

func readPoolingConfig(f *files, dir string, hidden int) (pooling, error) {
	name := path.Join(dir, configFile)
	if !fs.ValidPath(name) {
		return 0, wrong(modulesFile, "path %q leads elsewhere", clip(dir))
	}
	var c struct {
		Dimensions  int    `json:"word_embedding_dimension"`
		CLS         bool   `json:"pooling_mode_cls_token"`
		Mean        bool   `json:"pooling_mode_mean_tokens"`
		Max         bool   `json:"pooling_mode_max_tokens"`
		SquareRoot  bool   `json:"pooling_mode_mean_sqrt_len_tokens"`
		Weighted    bool   `json:"pooling_mode_weightedmean_tokens"`
		Last        bool   `json:"pooling_mode_lasttoken"`
		Mode        string `json:"pooling_mode"`
		WithPrompts *bool  `json:"include_prompt"`
	}
	found, err := f.json(name, &c)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, wrong(name, "is missing, and %s asks for it", modulesFile)
	}
	modes := map[string]bool{"cls": c.CLS, "mean": c.Mean, "max": c.Max, "mean_sqrt_len_tokens": c.SquareRoot, "weightedmean": c.Weighted, "lasttoken": c.Last}
	if c.Mode != "" {
		modes[c.Mode] = true
	}
	var on []string
	for _, mode := range sortedNames(modes) {
		if modes[mode] {
			on = append(on, mode)
		}
	}
	known := map[string]pooling{"cls": poolCLS, "mean": poolMean, "max": poolMax}
	pool, ok := known[strings.Join(on, "+")]
	switch {
	case !ok:
		return 0, wrong(name, "pooling is %q; one of cls, max and mean is run here", clip(strings.Join(on, "+")))
	case c.WithPrompts != nil && !*c.WithPrompts:
		return 0, wrong(name, "include_prompt is false, which is not run here")
	case c.Dimensions != 0 && c.Dimensions != hidden:
		return 0, wrong(name, "word_embedding_dimension is %d and hidden_size %d", c.Dimensions, hidden)
	}
	return pool, nil
}

// readMaxTokens finds how many tokens the model was made for: what
// sentence-transformers was told, else the tokenizer, else all positions.
func readMaxTokens(f *files, positions int) (int, error) {
	var s struct {
		Max *int `json:"max_seq_length"`
	}
	if _, err := f.json(sentenceConf, &s); err != nil {
		return 0, err
	}
	if s.Max != nil {
		if *s.Max < 3 {
			return 0, wrong(sentenceConf, "max_seq_length is %d", *s.Max)
		}
		return min(*s.Max, positions), nil
	}
	var t struct {
		Max *float64 `json:"model_max_length"` // 1e30 means "not known"
	}
	if _, err := f.json(tokenizerConf, &t); err != nil {
		return 0, err
	}
	if t.Max != nil && *t.Max >= 3 && *t.Max < float64(positions) {
		return int(*t.Max), nil
	}
	return positions, nil
}

func clip(s string) string { return s[:min(len(s), 60)] }
