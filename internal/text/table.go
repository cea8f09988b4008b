package text

// TermTable holds something for each of a few terms. Of nearly all others it says without a look-up
// that they are not among them, so that a text can be read for a query's terms. The zero value is empty.
type TermTable[V any] struct {
	may    [tableBits / 64]uint64 // by mark: a term may be there
	values map[string]V
}

const tableBits = 1024

// mark is a number that tells most terms apart, by their lengths and ends.
func mark(term string) uint {
	n := len(term)
	if n == 0 {
		return 0
	}
	return (uint(n)*37 + uint(term[0])*5 + uint(term[n-1])*131 + uint(term[n/2])*17) % tableBits
}

// Set takes what there is for a term, in place of what there was.
func (t *TermTable[V]) Set(term string, v V) {
	if t.values == nil {
		t.values = map[string]V{}
	}
	m := mark(term)
	t.may[m/64] |= 1 << (m % 64)
	t.values[term] = v
}

// Get gives what there is for a term.
func (t *TermTable[V]) Get(term string) (v V, ok bool) {
	if m := mark(term); t.may[m/64]>>(m%64)&1 == 0 {
		return v, false
	}
	v, ok = t.values[term]
	return v, ok
}

// Len is how many terms there are.
func (t *TermTable[V]) Len() int { return len(t.values) }
