package embed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// spaceEncoding is the version byte of the canonical encoding behind Space.ID.
const spaceEncoding = 1

// Space names a vector space. Two vectors may be compared only if their spaces
// are equal. The zero value is no space.
type Space struct {
	Provider   string // "builtin", "local", "ollama", "openai" or "gemini"
	Model      string // the provider's name of the model; local: NAME@DIGEST
	Dimensions int    // length of every vector

	// The prefixes are put before a text, verbatim, by its purpose; asymmetric
	// models need them, and another prefix gives other vectors.
	DocumentPrefix string
	QueryPrefix    string

	Normalised bool // every vector has length 1
	Version    int  // of the way vectors are made at equal names; starts at 1
}

// ID returns a short name of the space that is the same on every machine and in
// every release: 16 hexadecimal digits, the first 8 bytes of SHA-256 over
//
//	+---------+----------+-------+----------------+-------------+------+------+---------+
//	| 1 byte  | string   | string| string         | string      |uvar- |1 byte|uvarint  |
//	| enc = 1 | provider | model | document prefix| query prefix|int   |norm. |version  |
//	|         |          |       |                |             |dims  |0 or 1|         |
//	+---------+----------+-------+----------------+-------------+------+------+---------+
//
// where a string is a uvarint byte count followed by the bytes.
func (s Space) ID() string {
	b := make([]byte, 0, 96)
	b = append(b, spaceEncoding)
	for _, field := range []string{s.Provider, s.Model, s.DocumentPrefix, s.QueryPrefix} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	b = binary.AppendUvarint(b, uint64(max(s.Dimensions, 0)))
	if s.Normalised {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(max(s.Version, 0)))
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// String returns the space for people, e.g.
// `ollama/nomic-embed-text 768d v1 doc="search_document: " query="search_query: "`.
func (s Space) String() string {
	if s == (Space{}) {
		return "none"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s %dd v%d", s.Provider, s.Model, s.Dimensions, s.Version)
	if s.DocumentPrefix != "" {
		b.WriteString(" doc=" + strconv.Quote(s.DocumentPrefix))
	}
	if s.QueryPrefix != "" {
		b.WriteString(" query=" + strconv.Quote(s.QueryPrefix))
	}
	if !s.Normalised {
		b.WriteString(" raw")
	}
	return b.String()
}

// prefix returns what the space puts before a text of that purpose.
func (s Space) prefix(p Purpose) string {
	if p == Query {
		return s.QueryPrefix
	}
	return s.DocumentPrefix
}
