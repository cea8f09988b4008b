package likeness

import (
	"bytes"
	"encoding/json"
)

// Said is what the metadata of a memory tell of how often it was said: below "said", or below
// "mneme.said" where its author keeps something else there.
type Said struct {
	Nonce string `json:"nonce,omitempty"` // of the first time
	// Repeats is how often the same was said before: by this memory, or by those that it is
	// derived from. Last is the nonce of the last time.
	Repeats    int     `json:"repeats,omitempty"`
	Last       string  `json:"last,omitempty"`
	Near       string  `json:"near,omitempty"` // the memory that says nearly the same
	Similarity float64 `json:"similarity,omitempty"`
}

// Where it stands: taken is for metadata in which somebody else keeps something below name.
const (
	name  = "said"
	taken = "mneme.said"
)

// SaidOf reads it. Metadata without it, or of another shape, are as good as none.
func SaidOf(metadata json.RawMessage) Said {
	var all map[string]json.RawMessage
	if json.Unmarshal(metadata, &all) != nil {
		return Said{}
	}
	if s, ours := read(all[name]); ours {
		return s
	}
	if s, ours := read(all[taken]); ours {
		return s
	}
	var s Said
	if json.Unmarshal(all["hook"], &s) != nil { // where hooks kept it before, beside other marks
		return Said{}
	}
	return s
}

// read reads what stands below a name, if it is what In wrote there.
func read(value json.RawMessage) (s Said, ours bool) {
	if !bytes.HasPrefix(value, []byte("{")) {
		return Said{}, false
	}
	strict := json.NewDecoder(bytes.NewReader(value))
	strict.DisallowUnknownFields()
	if strict.Decode(&s) != nil {
		return Said{}, false
	}
	return s, true
}

// In puts it into metadata, beside what others keep there.
func (s Said) In(metadata json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(metadata, &all) // none is as good as one of another shape
	if _, ours := read(all[name]); ours || all[name] == nil {
		return Put(metadata, name, s)
	}
	return Put(metadata, taken, s)
}

// Put puts a value into metadata, beside what others keep there.
func Put(metadata json.RawMessage, name string, value any) json.RawMessage {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(metadata, &all) // none is as good as one of another shape
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	b, err := json.Marshal(value)
	if err != nil {
		return metadata
	}
	all[name] = b
	if b, err = json.Marshal(all); err != nil {
		return metadata
	}
	return b
}
