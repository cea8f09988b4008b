package embed

import (
	"fmt"
	"log/slog"
	"strings"
)

const redacted = "[redacted]"

// Secret is a key that does not print: fmt, log/slog and the encoders show
// "[redacted]", or nothing if it is empty. The zero value is no secret.
type Secret struct {
	// A pointer, because fmt walks into unexported fields of an enclosing struct
	// without asking methods; there it finds an address.
	value *string
}

// NewSecret wraps a key. Surrounding space is cut off: keys come from files and
// variables, with line ends.
func NewSecret(value string) Secret {
	value = strings.TrimSpace(value)
	if value == "" {
		return Secret{}
	}
	return Secret{value: &value}
}

// Reveal returns the key itself.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether there is no key.
func (s Secret) IsZero() bool { return s.value == nil }

// String returns "[redacted]", or "" without a key.
func (s Secret) String() string {
	if s.value == nil {
		return ""
	}
	return redacted
}

// Format prints String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue keeps the key out of structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps the key out of JSON, YAML and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a key from configuration.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// scrub removes the key from words that came from elsewhere.
func (s Secret) scrub(words string) string {
	if s.value == nil {
		return words
	}
	return strings.ReplaceAll(words, *s.value, redacted)
}
