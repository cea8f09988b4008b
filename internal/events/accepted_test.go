package events

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// accepted are digests of the golden bytes. They stand here, and not beside the
// bytes, so that -rewrite alone cannot make a changed format pass.
var accepted = map[string]string{
	"chain":                      "26c6bfec8c493af0",
	"content-text":               "ad3792fc74be74a3",
	"content":                    "ee5399c3742461f7",
	"envelope-graph.changed":     "7cef7dc2fad29a19",
	"graph":                      "8a9f5035174bccfe",
	"envelope-memory.read":       "8273a02d16310634",
	"read":                       "4f9531793bf61c78",
	"envelope-epoch.began":       "8ec459343532f460",
	"envelope-event.quarantined": "129330e9feedc868",
	"envelope-level.raised":      "52dc7b3784771b08",
	"envelope-key.created":       "d24a4b27e165c66a",
	"envelope-key.destroyed":     "6c7b04cc76faa1f7",
	"envelope-leader.began":      "762d04c31731e50b",
	"envelope-memory.captured":   "8252a8128a7b8636",
	"envelope-memory.forgotten":  "4fa36dfe773c5cf1",
	"envelope-memory.revised":    "8182032908f9060e",
	"envelope-namespace.changed": "6d89e8bde2f7ad32",
	"envelope-namespace.created": "bd484c6461599da7",
	"envelope-namespace.deleted": "3b8a36f16318bfd1",
	"envelope-namespace.placed":  "39def94bdc51c4cb",
	"envelope-space.building":    "b06dd81b0fe997ff",
	"envelope-space.dropped":     "a1f762e8e51365c2",
	"envelope-space.switched":    "fd35e236644be4fe",
	"envelope-vectors.attached":  "ddcbae6d5d444b7c",
	"frame":                      "b787f1bb2ee9b414",
	"settings":                   "a60a8a043f1361f1",
	"vectors-float":              "8ec0402bfcd921d9",
	"vectors-small":              "925f3c99d7bc0d13",
	"vectors":                    "c9046e6ef683735f",
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// TestGoldenBytesAreAccepted: the files and the list speak of the same bytes.
func TestGoldenBytesAreAccepted(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) != len(accepted) {
		t.Errorf("%d golden files, %d accepted digests, %v", len(files), len(accepted), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".golden")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
		if err != nil || digest(b) != accepted[name] {
			t.Errorf("%s holds other bytes than were accepted: %s, %v", file, digest(b), err)
		}
	}
}
