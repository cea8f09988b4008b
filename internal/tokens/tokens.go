// Package tokens counts text in the unit in which the windows of language models are
// measured. It counts by the encoding cl100k_base, exactly; other models cut text a little
// otherwise, mostly into fewer tokens. What is counted, and when to stop, is its callers'.
package tokens

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// maxTokenBytes is the length of the longest token of the encoding. The shortest is a byte.
const maxTokenBytes = 128

// encoding is made at first use, which takes about 13 ms and 3 MB.
var encoding = sync.OnceValue(codec.NewCl100kBase)

// Count is how many tokens a text has. It goes through about 5 MB a second, and may be
// called concurrently.
func Count(text string) int {
	n, err := encoding().Count(text)
	if err != nil { // the expression that splits text gave up: each byte may be a token
		return len(text)
	}
	return n
}

// Budget is a number of tokens of which pieces of text are taken one after the other. It
// has one user at a time.
type Budget struct {
	left      int
	uncounted []string // were taken, because they would fit if each of their bytes was a token
	bytes     int      // of uncounted
}

// NewBudget is a budget of n tokens.
func NewBudget(n int) *Budget { return &Budget{left: n} }

// Take takes a piece if there is room for it, and else leaves the budget as it is. What
// surely fits, or surely does not, is not counted.
func (b *Budget) Take(piece string) bool {
	if b.bytes+len(piece) <= b.left {
		b.uncounted = append(b.uncounted, piece)
		b.bytes += len(piece)
		return true
	}
	for _, taken := range b.uncounted {
		b.left -= Count(taken)
	}
	b.uncounted, b.bytes = nil, 0
	if len(piece) > b.left*maxTokenBytes {
		return false
	}
	n := Count(piece)
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}
