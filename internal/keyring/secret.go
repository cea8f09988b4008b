package keyring

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
)

// KeyID names a data key. It is no secret: it stands in clear headers. The zero
// value means none.
type KeyID [16]byte

// NamespaceID is a namespace's identity: the bytes of its ULID.
type NamespaceID = [16]byte

// String returns 32 hexadecimal digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id names no key.
func (id KeyID) IsZero() bool { return id == KeyID{} }

// MarshalText gives String's digits.
func (id KeyID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText gave.
func (id *KeyID) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(id)) {
		return fmt.Errorf("parse key id: %d characters, want 32", len(text))
	}
	if _, err := hex.Decode(id[:], text); err != nil {
		return fmt.Errorf("parse key id: %w", err)
	}
	return nil
}

// secret is 32 bytes of key material. Other types hold it behind a pointer, so
// that fmt, which walks unexported fields without calling their methods, can
// at most print an address.
type secret [32]byte

func newSecret(rand io.Reader) (*secret, error) {
	s := new(secret)
	if _, err := io.ReadFull(rand, s[:]); err != nil {
		return nil, fmt.Errorf("read randomness: %w", err)
	}
	return s, nil
}

// Format keeps every verb from printing the bytes.
func (s secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "redacted") }

// LogValue keeps slog from printing the bytes.
func (s secret) LogValue() slog.Value { return slog.StringValue("redacted") }

// MarshalText keeps encoders from printing the bytes.
func (s secret) MarshalText() ([]byte, error) { return []byte("redacted"), nil }

// redacted keeps what embeds it from printing, whatever the verb or encoder.
// Types that hold secrets need it although secret has the same methods: fmt
// does not call those on unexported fields.
type redacted struct{}

// String tells nothing.
func (redacted) String() string { return "redacted" }

// Format prints String for every verb.
func (r redacted) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// LogValue is String.
func (r redacted) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText is String.
func (r redacted) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (s *secret) wipe() {
	if s != nil {
		clear(s[:])
	}
}

// derive is HKDF-Expand (RFC 5869, section 2.3). Section 3.3 allows to skip
// Extract where, as here, the input is already uniformly random.
func (s *secret) derive(label string) *secret {
	out, err := hkdf.Expand(sha256.New, s[:], labelPrefix+label, len(secret{}))
	if err != nil {
		panic("keyring: 32 bytes of HKDF refused: " + err.Error())
	}
	r := secret(out)
	clear(out)
	return &r
}

// labelPrefix separates this package's derivations, and their versions, from all others.
const labelPrefix = "mneme/keyring/v1/"
