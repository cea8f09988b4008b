package keyring

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// The master key's file is one line of text, so that it can live in a password
// manager or a cluster's secret:
//
//	mneme-master-key v1 <64 hexadecimal digits> <16 hexadecimal digits>
//
// The last field is the beginning of the SHA-256 of everything up to the space
// before it, in every version.
const (
	masterName    = "master.key"
	masterPrefix  = "mneme-master-key"
	masterVersion = 1
	masterSum     = 8
)

func encodeMaster(key *secret) []byte {
	head := fmt.Appendf(nil, "%s v%d ", masterPrefix, masterVersion)
	head = hex.AppendEncode(head, key[:])
	sum := sha256.Sum256(head)
	return append(hex.AppendEncode(append(head, ' '), sum[:masterSum]), '\n')
}

func decodeMaster(text []byte) (*secret, error) {
	line := bytes.TrimRight(text, "\r\n")
	space := bytes.LastIndexByte(line, ' ')
	if space < 0 {
		return nil, fmt.Errorf("master key: %w: no such line", ErrDamaged)
	}
	sum := sha256.Sum256(line[:space])
	if hex.EncodeToString(sum[:masterSum]) != string(line[space+1:]) {
		return nil, fmt.Errorf("master key: %w: checksum differs", ErrDamaged)
	}
	fields := strings.Split(string(line[:space]), " ")
	if len(fields) < 2 || fields[0] != masterPrefix || !strings.HasPrefix(fields[1], "v") {
		return nil, fmt.Errorf("master key: %w: no such line", ErrDamaged)
	}
	if v, err := strconv.Atoi(fields[1][1:]); err == nil && v > masterVersion {
		return nil, fmt.Errorf("master key: %w: version %d, known %d", ErrNewerFormat, v, masterVersion)
	}
	if len(fields) != 3 || fields[1] != "v1" || len(fields[2]) != 2*len(secret{}) {
		return nil, fmt.Errorf("master key: %w: no such line", ErrDamaged)
	}
	key := new(secret)
	if _, err := hex.Decode(key[:], []byte(fields[2])); err != nil {
		return nil, fmt.Errorf("master key: %w: not hexadecimal", ErrDamaged)
	}
	return key, nil
}

// readMaster gives nil and no error where there is no file.
func readMaster(fsys FS, dir string) (*secret, error) {
	path := filepath.Join(dir, masterName)
	text, err := fsys.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	defer clear(text)
	key, err := decodeMaster(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// makeMaster makes a master key that is durable when it returns.
func makeMaster(fsys FS, dir string, rand io.Reader) (*secret, error) {
	key, err := newSecret(rand)
	if err != nil {
		return nil, fmt.Errorf("make master key: %w", err)
	}
	if err := writeMaster(fsys, dir, key); err != nil {
		return nil, err
	}
	return key, nil
}

func writeMaster(fsys FS, dir string, key *secret) error {
	text := encodeMaster(key)
	defer clear(text)
	if err := replace(fsys, dir, filepath.Join(dir, masterName), text); err != nil {
		return fmt.Errorf("write master key: %w", err)
	}
	return nil
}
