package likeness

import (
	"encoding/json"
)

// Said is what the metadata of a memory tell, below "said", of how often it was said.
type Said struct {
	Nonce string `json:"nonce,omitempty"` // of the first time
	// Repeats is how often the same was said before: by this memory, or by those that it is
	// derived from. Last is the nonce of the last time.
	Repeats    int     `json:"repeats,omitempty"`
	Last       string  `json:"last,omitempty"`
	Near       string  `json:"near,omitempty"` // the memory that says nearly the same
	Similarity float64 `json:"similarity,omitempty"`
}

// SaidOf reads it. Metadata without it, or of another shape, are as good as none.
func SaidOf(metadata json.RawMessage) Said {
	var all struct {
		Said *Said `json:"said"`
		Hook Said  `json:"hook"` // where hooks kept it before
	}
	if json.Unmarshal(metadata, &all) != nil {
		return Said{}
	}
	if all.Said != nil {
		return *all.Said
	}
	return all.Hook
}

// In puts it into metadata, beside what others keep there.
func (s Said) In(metadata json.RawMessage) json.RawMessage { return Put(metadata, "said", s) }

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
