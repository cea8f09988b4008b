package keyring

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// The master key is one line of text, so that it can live in a password manager
// or a cluster's secret:
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
