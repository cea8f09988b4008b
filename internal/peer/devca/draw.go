package devca

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mneme/internal/files"
)

// secretDigits are those of 32 random bytes, as many as a master key has.
const secretDigits = 64

// ErrSecret: a file holds something else than a secret that Draw drew.
var ErrSecret = errors.New("the secret cannot be used")

// Draw reads the secret in a file, 64 hexadecimal digits, or draws it: what is sealed
// under a key is lost with it, so that one that is there is never replaced.
func Draw(path string) (string, error) {
	b, err := os.ReadFile(path)
	switch text := strings.TrimSpace(string(b)); {
	case err == nil && len(text) != secretDigits:
		return "", fmt.Errorf("%w: %s is not %d hexadecimal digits", ErrSecret, path, secretDigits)
	case err == nil:
		if _, err := hex.DecodeString(text); err != nil {
			return "", fmt.Errorf("%w: %s is not %d hexadecimal digits", ErrSecret, path, secretDigits)
		}
		return text, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := files.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	var raw [secretDigits / 2]byte
	_, _ = rand.Read(raw[:]) // it does not fail
	text := hex.EncodeToString(raw[:])
	err = files.Create(path, 0o600, files.Bytes([]byte(text+"\n")))
	if errors.Is(err, fs.ErrExist) { // of two that draw at once one is first
		return Draw(path)
	}
	return text, err
}

// Keep writes a note about the secrets beside them, whole or not at all. The first one must
// not be there yet: of several calls that write it one succeeds, the others get fs.ErrExist.
func Keep(path string, text []byte, first bool) error {
	if first {
		return files.Create(path, 0o600, files.Bytes(text))
	}
	return files.Replace(path, 0o600, files.Bytes(text))
}
