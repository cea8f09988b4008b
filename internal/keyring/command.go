package keyring

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A command changes the keyring. It carries all randomness that it needs, so
// that every node comes to the same keys, and it travels and is kept sealed
// under the command key, which is a part of the machine's state:
//
//	 0      1             9          21              n
//	├──────┼─────────────┼──────────┼───────────────┤
//	│vers. │ command key │ nonce    │ body, sealed  │
//	│      │ print       │          │               │
//	└──────┴─────────────┴──────────┴───────────────┘
//
// with AES-256-GCM and bytes 0 to 8 as additional data. Each command that
// destroys brings the next command key: the commands before it, which carried
// the destroyed keys, open nowhere any more. The body begins with its kind:
//
//	1 create namespace   namespace id ‖ index key ‖ key id ‖ data key
//	2 ensure subjects    namespace id ‖ u32 n, each: subject tag 16 ‖ key id ‖ data key
//	3 combine            u32 n, each: key id
//	4 destroy            next command key ‖ u32 n, each: key id
//	5 destroy namespace  next command key ‖ namespace id
//
// Ids have 16 bytes, keys 32, numbers are big endian.
const (
	commandVersion = 1
	commandAAD     = 1 + secretPrintSize
	commandMinimum = commandAAD + nonceSize + tagSize
)

type commandKind uint8

const (
	kindCreateNamespace commandKind = 1 + iota
	kindEnsureSubjects
	kindCombine
	kindDestroy
	kindDestroyNamespace
)

// command is an opened command; which fields count depends on its kind.
type command struct {
	redacted
	kind  commandKind
	ns    NamespaceID
	index *secret // a namespace's index key
	next  *secret // the next command key
	fresh []freshKey
	ids   []KeyID
}

// freshKey is a data key that a command proposes for a subject.
type freshKey struct {
	redacted
	tag subjectTag
	id  KeyID
	raw *secret
}

func (c *command) encode() []byte {
	b := make([]byte, 0, 1+16+32+4+64*len(c.fresh)+16*len(c.ids))
	b = append(b, byte(c.kind))
	count := func(n int) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	switch c.kind {
	case kindCreateNamespace:
		b = append(append(b, c.ns[:]...), c.index[:]...)
		b = append(append(b, c.fresh[0].id[:]...), c.fresh[0].raw[:]...)
	case kindEnsureSubjects:
		b = append(b, c.ns[:]...)
		count(len(c.fresh))
		for _, f := range c.fresh {
			b = append(append(append(b, f.tag[:]...), f.id[:]...), f.raw[:]...)
		}
	case kindDestroyNamespace:
		b = append(append(b, c.next[:]...), c.ns[:]...)
	case kindDestroy:
		b = append(b, c.next[:]...)
		fallthrough
	case kindCombine:
		count(len(c.ids))
		for _, id := range c.ids {
			b = append(b, id[:]...)
		}
	}
	return b
}

// decodeCommand reads what encode wrote; it keeps no part of body. Errors:
// ErrDamaged, ErrNewerFormat for a kind that it does not know.
func decodeCommand(body []byte) (*command, error) {
	r := &tableReader{rest: body}
	c := &command{kind: commandKind(r.take(1)[0])}
	switch c.kind {
	case kindCreateNamespace:
		c.ns, c.index = r.id(), r.secret()
		c.fresh = []freshKey{{id: r.id(), raw: r.secret()}}
	case kindEnsureSubjects:
		c.ns = r.id()
		for range r.count(64) {
			c.fresh = append(c.fresh, freshKey{tag: r.id(), id: r.id(), raw: r.secret()})
		}
	case kindDestroyNamespace:
		c.next, c.ns = r.secret(), r.id()
	case kindDestroy:
		c.next = r.secret()
		fallthrough
	case kindCombine:
		for range r.count(16) {
			c.ids = append(c.ids, r.id())
		}
	default:
		if !r.short && c.kind > kindDestroyNamespace {
			return nil, fmt.Errorf("%w: command %d, known %d", ErrNewerFormat, c.kind, kindDestroyNamespace)
		}
		r.short = true
	}
	if r.short || len(r.rest) != 0 {
		return nil, fmt.Errorf("%w: command %d of %d bytes ends wrongly", ErrDamaged, c.kind, len(body))
	}
	return c, nil
}

// wipe ends a command whose keys nobody took over.
func (c *command) wipe() {
	c.index.wipe()
	c.next.wipe()
	for _, f := range c.fresh {
		f.raw.wipe()
	}
}

func commandPrint(key *secret) [secretPrintSize]byte {
	return [secretPrintSize]byte(key.derive("command key print")[:])
}

// sealCommand seals c under the command key.
func sealCommand(c *command, key *secret, rand io.Reader) ([]byte, error) {
	var nonce [nonceSize]byte
	if _, err := io.ReadFull(rand, nonce[:]); err != nil {
		return nil, fmt.Errorf("seal command: read randomness: %w", err)
	}
	body := c.encode()
	defer clear(body)
	print := commandPrint(key)
	b := make([]byte, 0, commandMinimum+len(body))
	b = append(append(append(b, commandVersion), print[:]...), nonce[:]...)
	return newGCM(key).Seal(b, nonce[:], body, b[:commandAAD]), nil
}

// openCommand opens what sealCommand made; nil and no error if it was sealed
// under another command key. Errors: ErrDamaged, ErrNewerFormat.
func openCommand(sealed []byte, key *secret) (*command, error) {
	if len(sealed) > 0 && sealed[0] > commandVersion {
		return nil, fmt.Errorf("%w: command version %d, known %d", ErrNewerFormat, sealed[0], commandVersion)
	}
	if len(sealed) < commandMinimum || sealed[0] != commandVersion {
		return nil, fmt.Errorf("%w: not a command", ErrDamaged)
	}
	if commandPrint(key) != [secretPrintSize]byte(sealed[1:commandAAD]) {
		return nil, nil
	}
	rest := sealed[commandAAD:]
	body, err := newGCM(key).Open(nil, rest[:nonceSize], rest[nonceSize:], sealed[:commandAAD])
	if err != nil {
		return nil, fmt.Errorf("%w: command's seal broken", ErrDamaged)
	}
	defer clear(body)
	return decodeCommand(body)
}
