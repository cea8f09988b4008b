package embed

import (
	"context"
	"fmt"
	"strings"
)

// Purpose says what a text is embedded for. Asymmetric models place a question
// near its answers only if they are told which is which.
type Purpose uint8

const (
	Document Purpose = iota // a text that is stored and should be found
	Query                   // a text that searches
)

func (p Purpose) String() string {
	switch p {
	case Document:
		return "document"
	case Query:
		return "query"
	}
	return fmt.Sprintf("purpose(%d)", uint8(p))
}

// Embedder makes vectors in one space. Its methods may be called concurrently.
type Embedder interface {
	// Space returns the space of every vector from this embedder. It never changes.
	Space() Space

	// Embed returns one vector per text, in order: finite, of length 1, with
	// Space().Dimensions numbers. The vectors belong to the caller. No texts give
	// no vectors and no error. A blank text, or one in which the built-in model
	// finds nothing ("!!!"), is ErrBadInput with its index. Either all texts have
	// a vector or the error is not nil; errors are *Error, or wrap the context's
	// when it was the caller who gave up.
	Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error)

	// Close ends calls in flight, waits for them and frees what the embedder
	// holds. Later calls of Embed return ErrClosed. It may be called twice.
	Close() error
}

// Names of providers, as in configuration.
const (
	ProviderAuto    = "auto" // the built-in one, always
	ProviderBuiltin = "builtin"
	ProviderOllama  = "ollama"
	ProviderOpenAI  = "openai" // and every server that speaks its protocol
	ProviderGemini  = "gemini"
	ProviderLocal   = "local" // a BERT-family model in a directory of this machine
	ProviderNone    = "none"
)

// IsBuiltin reports whether vectors of that provider are a pure function of the
// text and of Space.Version, so that a replay derives them and no event has to
// carry them. ProviderLocal's are not: processors round differently.
func IsBuiltin(provider string) bool {
	return canonicalProvider(provider) == ProviderBuiltin
}

// canonicalProvider maps spellings and the default to one name; unknown names
// come back folded.
func canonicalProvider(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" || name == ProviderAuto {
		return ProviderBuiltin
	}
	return name
}

// checkTexts refuses what no provider can embed, so that one bad text does not
// cost a request.
func checkTexts(provider string, p Purpose, texts []string) error {
	if p > Query {
		return &Error{Kind: ErrBadInput, Provider: provider, Index: -1, Detail: p.String() + " is neither document nor query"}
	}
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			return &Error{Kind: ErrBadInput, Provider: provider, Index: i, Detail: "text is blank"}
		}
	}
	return nil
}
