package views

// pairs are the pairs of neighbouring bytes of a string, as 256 bits that pairs share by a hash:
// what has not all of a string's bits does not hold that string. Short texts, as observations
// are, set few of them, so that a search reads few texts that it does not find.
type pairs [4]uint64

func pairsOf(all ...string) (p pairs) {
	for _, s := range all {
		for i := 1; i < len(s); i++ {
			bit := (uint32(s[i-1])<<8 | uint32(s[i])) * 2654435761 >> 24 // Knuth's multiplicative hash: the top 8 bits
			p[bit>>6] |= 1 << (bit & 63)
		}
	}
	return p
}

// may reports whether what has these pairs may hold a string with those.
func (p *pairs) may(of *pairs) bool {
	return of[0]&^p[0]|of[1]&^p[1]|of[2]&^p[2]|of[3]&^p[3] == 0
}
