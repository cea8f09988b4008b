package auth

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
	"mneme/memory"
)

const (
	tokenPrefix  = "mneme_"
	tokenEntropy = 32 // bytes
	minToken     = 16 // characters
	maxToken     = 512
)

// madeToken is how long a token is that the program made.
var madeToken = len(tokenPrefix) + base64.RawURLEncoding.EncodedLen(tokenEntropy)

// CheckToken validates a token that an operator chose: 16 to 512 visible ASCII
// characters. One that begins as the program's own do is as long as they are, or was cut.
func CheckToken(token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return memory.Errorf(memory.CodeInvalid, "the token has %d characters, it must have %d to %d", len(token), minToken, maxToken)
	}
	if strings.HasPrefix(token, tokenPrefix) && len(token) < madeToken {
		return memory.Errorf(memory.CodeInvalid, "the token begins as one that memnode made and has %d characters, not %d: it was cut", len(token), madeToken)
	}
	for i := 0; i < len(token); i++ {
		if token[i] < 0x21 || token[i] > 0x7e {
			return memory.Errorf(memory.CodeInvalid, "the token may hold visible ASCII characters only")
		}
	}
	return nil
}

// LoadOrCreateToken reads the operator token at path on fsys, or makes one there
// with mode 0600 and everything above it with 0700. A file that its group or
// others may read is refused. fsys and random may be nil for the system's.
func LoadOrCreateToken(fsys vfs.FS, path string, random io.Reader) (token string, created bool, err error) {
	if fsys == nil {
		fsys = vfs.Default
	}
	if random == nil {
		random = rand.Reader
	}
	token, err = loadToken(fsys, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, false, err
	}
	var b [tokenEntropy]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", false, fmt.Errorf("make operator token: %w", err)
	}
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	err = writeToken(fsys, path, token)
	if errors.Is(err, fs.ErrExist) { // another process was faster
		token, err = loadToken(fsys, path)
		return token, false, err
	}
	if err != nil {
		return "", false, err
	}
	return token, true, nil
}

// LoadToken reads the operator token at path, under the rules of LoadOrCreateToken; none is
// made. fsys may be nil for the system's.
func LoadToken(fsys vfs.FS, path string) (string, error) {
	if fsys == nil {
		fsys = vfs.Default
	}
	return loadToken(fsys, path)
}

func loadToken(fsys vfs.FS, path string) (string, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return "", fmt.Errorf("read operator token: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read operator token: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", memory.Errorf(memory.CodeInvalid, "operator token %s is not a file", path)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 && fsys == vfs.Default && runtime.GOOS != "windows" {
		return "", memory.Errorf(memory.CodeForbidden, "operator token %s has mode %04o: others can read it", path, perm).
			WithHint("if nobody else has read it: chmod 600 %s; otherwise delete it and start again to get a new one", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxToken+8))
	if err != nil {
		return "", fmt.Errorf("read operator token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if err := CheckToken(token); err != nil {
		return "", memory.Errorf(memory.CodeInvalid, "operator token %s: %w", path, err).
			WithHint("delete the file and start again to get a new token")
	}
	return token, nil
}

// writeToken makes the file, which fails with ErrExist rather than replace a token
// that someone may already use.
func writeToken(fsys vfs.FS, path, token string) error {
	err := storage.MkdirAll(fsys, filepath.Dir(path), 0o700)
	if err == nil {
		err = storage.CreateFile(fsys, path, []byte(token+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write operator token: %w", err)
	}
	return nil
}
