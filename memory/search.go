package memory

import (
	"encoding/json"
	"time"
)

// Mode selects the sources of a search.
type Mode string

// The modes. An empty mode means ModeHybrid.
const (
	ModeHybrid Mode = "hybrid"
	ModeVector Mode = "vector"
	ModeText   Mode = "text"
)

// Consistency says how fresh a read must be.
type Consistency string

// The levels. An empty one means ConsistencyLocal.
const (
	ConsistencyLocal        Consistency = "local"
	ConsistencyLinearizable Consistency = "linearizable"
)

// Syntax says how a query is read.
type Syntax string

// SyntaxPlain reads every word and mark as it is: what somebody said, and not a query that
// somebody wrote. An empty syntax has the operators: quotes, -words, beginnings*.
const SyntaxPlain Syntax = "plain"

// Purpose says what an answer is for.
type Purpose string

// PurposeInject is a read, a search or a list, whose answer goes into an agent's prompt as a
// block of what is known: a hook's, or a recall's. A namespace may have such reads audited. An
// empty purpose says nothing.
const PurposeInject Purpose = "inject"

// Part is a step of a search that can be switched on and off.
type Part string

// The parts of a search beside its text and vectors.
const (
	PartNeighbours Part = "neighbours" // messages before and after contribute what they match
	PartSpeaker    Part = "speaker"    // a query that names an agent prefers what it said
	PartDates      Part = "dates"      // dates in a query are compared with occurred_at
	PartVocabulary Part = "vocabulary" // words that nothing has are read as those that memories have
	PartOpening    Part = "opening"    // the first message of a conversation says what it is about
	PartRecent     Part = "recent"     // a query in the first person prefers what was written lately
	PartNewer      Part = "newer"      // where a query asks for what holds now, the newer memory about the same comes first
)

// Parts lists all parts.
var Parts = []Part{PartNeighbours, PartSpeaker, PartDates, PartVocabulary, PartOpening, PartRecent, PartNewer}

// Filter narrows a search. Empty fields do not filter. Since and Until are on
// occurred_at; Since is inclusive, Until exclusive.
type Filter struct {
	Agents       []string   `json:"agents,omitempty"`
	Kinds        []Kind     `json:"kinds,omitempty"`
	Tags         []string   `json:"tags,omitempty"` // all of them
	Since        *time.Time `json:"since,omitempty"`
	Until        *time.Time `json:"until,omitempty"`
	Scope        Scope      `json:"scope,omitempty"`
	Conversation string     `json:"conversation,omitempty"`
}

// Empty reports whether the filter leaves nothing out. It may be nil.
func (f *Filter) Empty() bool {
	return f == nil || len(f.Agents) == 0 && len(f.Kinds) == 0 && len(f.Tags) == 0 && f.Since == nil && f.Until == nil && f.Scope == "" && f.Conversation == ""
}

// SearchRequest asks for memories.
type SearchRequest struct {
	Query       string      `json:"query"`
	Syntax      Syntax      `json:"syntax,omitempty"`
	As          string      `json:"as,omitempty"` // the agent that is reading
	Limit       *int        `json:"limit,omitempty"`
	Mode        Mode        `json:"mode,omitempty"`
	MinScore    *float64    `json:"min_score,omitempty"` // nil: the namespace's floor
	All         bool        `json:"all,omitempty"`       // also what lies below any floor
	Filter      *Filter     `json:"filter,omitempty"`
	AsOf        string      `json:"as_of,omitempty"`
	AtLeast     string      `json:"at_least,omitempty"`
	Consistency Consistency `json:"consistency,omitempty"`
	Explain     bool        `json:"explain,omitempty"`
	Purpose     Purpose     `json:"purpose,omitempty"`
	Vector      []float64   `json:"vector,omitempty"`
	// Parts overrides the namespace's settings for this search.
	Parts map[Part]bool `json:"parts,omitempty"`
	Fit
}

// SearchNamespaces asks for memories in several namespaces at once: their results are
// ranked together, under one limit.
type SearchNamespaces struct {
	Namespaces []string `json:"namespaces"`
	SearchRequest
}

// Hit is one result of a search. Scores lie in 0..1. Namespace is set where several
// were searched.
type Hit struct {
	Namespace    string          `json:"namespace,omitempty"`
	ID           string          `json:"id"`        // record id
	RecordID     string          `json:"record_id"` // the same, under the name that records give it
	URI          string          `json:"uri"`
	Text         string          `json:"text"`
	Truncated    bool            `json:"truncated,omitempty"` // text is cut to max_text, or, where an answer had no room for more, the snippet
	Snippet      string          `json:"snippet"`
	StartLine    int             `json:"start_line"`
	EndLine      int             `json:"end_line"`
	Kind         Kind            `json:"kind"`
	Agent        string          `json:"agent"`
	Tags         []string        `json:"tags"`
	OccurredAt   time.Time       `json:"occurred_at"`
	CreatedAt    time.Time       `json:"created_at"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Conversation string          `json:"conversation,omitempty"`
	Version      int             `json:"version"`
	Score        float64         `json:"score"`
	VectorScore  float64         `json:"vector_score"`
	TextScore    float64         `json:"text_score"`
	MatchedBy    []string        `json:"matched_by"`
	Position     string          `json:"position"`
	Scope        Scope           `json:"scope"`
	Explain      *Explain        `json:"explain,omitempty"`
}

// Explain accounts for a hit's score, which is 1 / (1 + exp(-Sum)). NewerThan is the older
// memory about the same thing that the part newer put the hit in front of, and OlderThan the
// newest that was put in front of the hit.
type Explain struct {
	Sum       float64       `json:"sum"` // Σ Weight × Value
	Parts     []ExplainPart `json:"parts"`
	Terms     []ExplainTerm `json:"terms,omitempty"`
	NewerThan string        `json:"newer_than,omitempty"`
	OlderThan string        `json:"older_than,omitempty"`
}

// ExplainPart is one addend of the sum.
type ExplainPart struct {
	Source string  `json:"source"`
	Weight float64 `json:"weight"`
	Value  float64 `json:"value"`
	Raw    float64 `json:"raw"` // what the value is made of: BM25, cosine
}

// ExplainTerm is one query term's share of the BM25 score. Where the memory holds
// something that stands for the term, ReadAs is that and Kind says why: the kind of a
// Correction, or form for the same word in another form.
type ExplainTerm struct {
	Term   string  `json:"term"`
	ReadAs string  `json:"read_as,omitempty"`
	Kind   string  `json:"kind,omitempty"`
	Score  float64 `json:"score"`
}

// Correction is a word of a query and what it was read as: a term that memories of the
// reader have. What a memory has of the term counts for the word, times Weight, where
// that is more than what it has of the word itself.
type Correction struct {
	Word   string `json:"word"` // as it stands in the query
	ReadAs string `json:"read_as"`
	// Kind is beginning, part, edit, glued, split, alias, related, or common for a word that is
	// known and rare; begins for a beginning that the query asks for with a star, and many,
	// with nothing else, where more terms begin so than are looked for. A phrase is one that
	// was found in no memory; Docs is how many have its words otherwise, as far as they were
	// read. With the weight 1 its words, which are ReadAs, were looked for in its place;
	// without a weight nothing was, and ReadAs is the query without its quotes.
	Kind     string  `json:"kind"`
	Weight   float64 `json:"weight"`
	Distance int     `json:"distance,omitempty"` // edits
	Docs     int     `json:"docs"`               // memories that have it, in the field where most do
}

// SearchResponse answers a search, best first, ties by id. It has the namespace, or the
// namespaces that were searched at once; their position is one for each of their shards,
// with commas between them, and good for at_least.
type SearchResponse struct {
	Results    []Hit    `json:"results"`
	Position   string   `json:"position"`
	TookMS     float64  `json:"took_ms"`
	Mode       Mode     `json:"mode"`
	Namespace  string   `json:"namespace,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Corrections are the words that were read as others too, in the query's order.
	Corrections []Correction `json:"corrections,omitempty"`
	LeftOff     *LeftOff     `json:"left_off,omitempty"` // for which the budget had no room
	// NothingFound says that there is no result. Where something matched and lay below the
	// floor, BestRefused is the best score of that.
	NothingFound bool    `json:"nothing_found,omitempty"`
	BestRefused  float64 `json:"best_refused,omitempty"`
}
