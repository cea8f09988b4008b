package local

import (
	"bytes"
	"encoding/json"
	"strings"
)

// readTokenizer reads tokenizer.json, or else vocab.txt with the options of
// tokenizer_config.json. Only BERT's WordPiece is accepted.
func readTokenizer(f *files, size int) (*wordpiece, error) {
	b, err := f.small(tokenizerFile)
	if err != nil {
		return nil, err
	}
	if b != nil {
		return parseTokenizer(b, size)
	}
	b, err = f.small(vocabFile)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, wrong(tokenizerFile, "is missing, and so is %s", vocabFile)
	}
	o := tokenizerOptions{Lower: true, CJK: true}
	if _, err := f.json(tokenizerConf, &o); err != nil {
		return nil, err
	}
	return parseVocabulary(b, o, size)
}

// tokenizerOptions are those of tokenizer_config.json that BertTokenizer reads.
type tokenizerOptions struct {
	Lower bool  `json:"do_lower_case"`
	Strip *bool `json:"strip_accents"` // nil: as lower
	CJK   bool  `json:"tokenize_chinese_chars"`
}

// parseVocabulary reads a piece a line; its number is the line's, from 0.
func parseVocabulary(b []byte, o tokenizerOptions, size int) (*wordpiece, error) {
	w := &wordpiece{lower: o.Lower, stripAccents: o.Lower, spaceCJK: o.CJK, clean: true, maxChars: 100}
	if o.Strip != nil {
		w.stripAccents = *o.Strip
	}
	pieces := map[string]int32{}
	for line := range bytes.Lines(b) {
		if len(pieces) >= size {
			return nil, wrong(vocabFile, "has more than the %d pieces of %s", size, configFile)
		}
		piece := strings.TrimRight(string(line), "\r\n")
		if _, twice := pieces[piece]; twice {
			return nil, wrong(vocabFile, "has the piece %q twice", clip(piece))
		}
		pieces[piece] = int32(len(pieces))
	}
	return w, w.fill(vocabFile, pieces, "##", "[UNK]", size)
}

// parseTokenizer reads Hugging Face's tokenizer.json.
func parseTokenizer(b []byte, size int) (*wordpiece, error) {
	var t struct {
		Normalizer *struct {
			Type  string `json:"type"`
			Clean *bool  `json:"clean_text"`
			CJK   *bool  `json:"handle_chinese_chars"`
			Strip *bool  `json:"strip_accents"`
			Lower *bool  `json:"lowercase"`
		} `json:"normalizer"`
		PreTokenizer *struct {
			Type string `json:"type"`
		} `json:"pre_tokenizer"`
		Model struct {
			Type     string           `json:"type"`
			Unknown  string           `json:"unk_token"`
			Prefix   *string          `json:"continuing_subword_prefix"`
			MaxChars *int             `json:"max_input_chars_per_word"`
			Pieces   map[string]int32 `json:"vocab"`
		} `json:"model"`
	}
	var kind struct {
		Model struct {
			Type string `json:"type"`
		} `json:"model"`
	}
	// The type first: the vocabularies of other models are no maps.
	if err := json.Unmarshal(b, &kind); err != nil {
		return nil, &Error{File: tokenizerFile, Detail: "is not the JSON that was expected", Err: err}
	}
	if kind.Model.Type != "WordPiece" {
		return nil, wrong(tokenizerFile, "the tokenizer is %q; only WordPiece is run here", clip(kind.Model.Type))
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, &Error{File: tokenizerFile, Detail: "is not the JSON that was expected", Err: err}
	}
	if n := t.Normalizer; n == nil || n.Type != "BertNormalizer" {
		return nil, wrong(tokenizerFile, "the normalizer is not BertNormalizer")
	}
	if p := t.PreTokenizer; p == nil || p.Type != "BertPreTokenizer" {
		return nil, wrong(tokenizerFile, "the pre_tokenizer is not BertPreTokenizer")
	}
	or := func(p *bool, otherwise bool) bool {
		if p == nil {
			return otherwise
		}
		return *p
	}
	n := t.Normalizer
	w := &wordpiece{clean: or(n.Clean, true), spaceCJK: or(n.CJK, true), lower: or(n.Lower, true), maxChars: 100}
	w.stripAccents = or(n.Strip, w.lower)
	if t.Model.MaxChars != nil {
		w.maxChars = *t.Model.MaxChars
	}
	prefix, unknown := "##", "[UNK]"
	if t.Model.Prefix != nil {
		prefix = *t.Model.Prefix
	}
	if t.Model.Unknown != "" {
		unknown = t.Model.Unknown
	}
	return w, w.fill(tokenizerFile, t.Model.Pieces, prefix, unknown, size)
}

// fill sorts pieces into those that begin words and the others, and finds the
// special ones. Numbers have to be below size, that of the embeddings.
func (w *wordpiece) fill(file string, pieces map[string]int32, prefix, unknown string, size int) error {
	w.first, w.later = make(map[string]int32, len(pieces)), make(map[string]int32)
	for piece, id := range pieces {
		if id < 0 || int(id) >= size {
			return wrong(file, "piece %q has number %d, and %s has %d", clip(piece), id, configFile, size)
		}
		w.first[piece] = id
		w.longestFirst = max(w.longestFirst, len(piece))
		if rest, ok := strings.CutPrefix(piece, prefix); ok && rest != "" {
			w.later[rest] = id
			w.longestLater = max(w.longestLater, len(rest))
		}
	}
	for _, special := range []struct {
		name string
		id   *int32
	}{{"[CLS]", &w.cls}, {"[SEP]", &w.sep}, {unknown, &w.unk}} {
		id, ok := pieces[special.name]
		if !ok {
			return wrong(file, "has no piece %s", clip(special.name))
		}
		*special.id = id
	}
	return nil
}
