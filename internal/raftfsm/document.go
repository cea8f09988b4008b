package raftfsm

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A document is a small checksummed file.
//
//	bytes 0..3  magic
//	byte 4      version = 1
//	bytes 5..8  length n of the body, little endian
//	bytes 9..   body: JSON
//	then        SHA-256 of everything before it (32 bytes)
const (
	magicManifest    = "MSNP"
	magicMembers     = "MMBR"
	documentVersion  = 1
	documentHeader   = 9
	documentSum      = 32
	maxDocumentBytes = 64 << 20
)

func sealDocument(magic string, body []byte) []byte {
	out := make([]byte, 0, documentHeader+len(body)+documentSum)
	out = append(out, magic...)
	out = append(out, documentVersion)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
	out = append(out, body...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// documentLen returns the whole length of the document that begins with head
// (at least documentHeader bytes).
func documentLen(magic string, head []byte) (int, error) {
	switch {
	case len(head) < documentHeader:
		return 0, fmt.Errorf("%w: %d bytes", errDocument, len(head))
	case string(head[:4]) != magic:
		return 0, fmt.Errorf("%w: magic %q", errDocument, head[:4])
	case head[4] != documentVersion:
		return 0, fmt.Errorf("%w: version %d", errDocument, head[4])
	}
	n := binary.LittleEndian.Uint32(head[5:])
	if n > maxDocumentBytes {
		return 0, fmt.Errorf("%w: body of %d bytes", errDocument, n)
	}
	return documentHeader + int(n) + documentSum, nil
}

var errDocument = errors.New("damaged document")

// openDocument checks b and returns the body, a part of b.
func openDocument(magic string, b []byte) ([]byte, error) {
	n, err := documentLen(magic, b)
	if err != nil {
		return nil, err
	}
	if len(b) != n {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", errDocument, len(b), n)
	}
	if sum := sha256.Sum256(b[:n-documentSum]); string(sum[:]) != string(b[n-documentSum:]) {
		return nil, fmt.Errorf("%w: checksum differs", errDocument)
	}
	return b[documentHeader : n-documentSum], nil
}
