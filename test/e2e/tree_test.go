package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree describes the messages below a folder of the log: block files and their
// hashes. What the server keeps for itself beside them may change.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	for _, name := range files(t, dir) {
		if filepath.Ext(name) != ".blk" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %x\n", name, sha256.Sum256(b))
	}
	return out.String()
}

// newerKeyring raises the version of a keyring file as a newer program would
// write it: the checksum is right.
//
//	"MNEMEKR\0" ‖ u8 version ‖ u64 generation ‖ u64 n ‖ image ‖ SHA-256 of all before ‖ records
func newerKeyring(b []byte) []byte {
	b = bytes.Clone(b)
	b[8] = 99
	body := b[:25+binary.BigEndian.Uint64(b[17:])]
	sum := sha256.Sum256(body)
	copy(b[len(body):], sum[:])
	return b
}

// flip inverts one bit.
func flip(b []byte, bit uint64) []byte {
	b = bytes.Clone(b)
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

// bitsOf spreads n bit positions over a file: its ends and pseudo-random ones
// in between, the same for the same seed and name.
func bitsOf(size int64, n int, seed uint64, name string) []uint64 {
	if size == 0 {
		return nil
	}
	total := uint64(size) * 8
	out := []uint64{3, total - 5}
	for i := 0; len(out) < n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", seed, name, i))
		out = append(out, binary.BigEndian.Uint64(sum[:8])%total)
	}
	return out[:n]
}
