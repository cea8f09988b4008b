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

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
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
	if err := storage.MkdirAll(nil, filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	var raw [secretDigits / 2]byte
	_, _ = rand.Read(raw[:]) // it does not fail
	text := hex.EncodeToString(raw[:])
	// Of two that draw at once one is first, and the other takes what that has drawn.
	drawn := path + "." + text[:16]
	if err := storage.ReplaceFile(nil, drawn, []byte(text+"\n"), 0o600); err != nil {
		return "", err
	}
	err = os.Link(drawn, path)
	if err = errors.Join(err, os.Remove(drawn)); errors.Is(err, fs.ErrExist) {
		return Draw(path)
	}
	return text, errors.Join(err, storage.SyncDir(vfs.Default, filepath.Dir(path)))
}
