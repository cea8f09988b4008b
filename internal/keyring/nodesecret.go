package keyring

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
)

// The node's secret is the other half of the key that wraps key files:
//
//	wrapping key = HKDF-SHA-256(secret: master key, salt: node secret, info: label)
//
// It is replaced whenever something is destroyed, so that an older copy of a
// wrapped file stays shut even for who holds today's master key and today's
// secret. Its file's image is
//
//	 0      1                  1+32n
//	├──────┼──────────────────┤
//	│vers. │ n secrets        │
//	└──────┴──────────────────┘
//
// One secret is the rule. While a renewal is under way the former ones stand
// before the new one, which is the last.
const (
	nodeSecretVersion = 1
	secretPrintSize   = 8
)

// nodeSecrets holds the secrets and the master key they are combined with. The
// keyring's writer uses it, one call at a time.
type nodeSecrets struct {
	redacted
	store  Store
	rand   io.Reader
	master *secret
	all    []*secret // the last is current
}

// openSecrets reads the file; without one, all is empty.
func openSecrets(store Store, rand io.Reader, master *secret) (*nodeSecrets, error) {
	n := &nodeSecrets{store: store, rand: rand, master: master}
	image, err := store.Load()
	if err != nil || image == nil {
		return n, err
	}
	defer clear(image)
	n.all, err = decodeSecrets(image)
	return n, err
}

func decodeSecrets(image []byte) ([]*secret, error) {
	if len(image) > 0 && image[0] > nodeSecretVersion {
		return nil, fmt.Errorf("%w: node secret version %d, known %d", ErrNewerFormat, image[0], nodeSecretVersion)
	}
	if len(image) < 1+len(secret{}) || image[0] != nodeSecretVersion || (len(image)-1)%len(secret{}) != 0 {
		return nil, fmt.Errorf("%w: node secret of %d bytes", ErrDamaged, len(image))
	}
	var all []*secret
	for part := range slices.Chunk(image[1:], len(secret{})) {
		s := secret(part)
		all = append(all, &s)
	}
	return all, nil
}

func (n *nodeSecrets) save(all []*secret) error {
	image := make([]byte, 1, 1+len(all)*len(secret{}))
	defer func() { clear(image) }()
	image[0] = nodeSecretVersion
	for _, s := range all {
		image = append(image, s[:]...)
	}
	return n.store.Save(image)
}

// begin adds a new current secret and makes it durable beside the former ones.
func (n *nodeSecrets) begin() error {
	s, err := newSecret(n.rand)
	if err != nil {
		return err
	}
	all := append(slices.Clone(n.all), s)
	if err := n.save(all); err != nil {
		s.wipe()
		return err
	}
	n.all = all
	return nil
}

// finish ends all secrets but the current one. Every file must be wrapped under
// that by now.
func (n *nodeSecrets) finish() error {
	last := len(n.all) - 1
	if err := n.save(n.all[last:]); err != nil {
		return err
	}
	for _, s := range n.all[:last] {
		s.wipe()
	}
	n.all = n.all[last:]
	return nil
}

// unfinished reports whether a renewal was cut short.
func (n *nodeSecrets) unfinished() bool { return len(n.all) > 1 }

// wrapping gives the key that wraps under the current secret, and the print by
// which a file names that secret.
func (n *nodeSecrets) wrapping(label string) (*secret, [secretPrintSize]byte) {
	s := n.all[len(n.all)-1]
	return n.combine(s, label), secretPrint(s)
}

// unwrapping finds the wrapping key of a file by the print that it names.
func (n *nodeSecrets) unwrapping(label string, print [secretPrintSize]byte) (*secret, error) {
	for _, s := range n.all {
		if secretPrint(s) == print {
			return n.combine(s, label), nil
		}
	}
	return nil, fmt.Errorf("%w: it was sealed under a node secret that is gone", ErrDamaged)
}

func (n *nodeSecrets) combine(s *secret, label string) *secret {
	out, err := hkdf.Key(sha256.New, n.master[:], s[:], labelPrefix+label, len(secret{}))
	if err != nil {
		panic("keyring: 32 bytes of HKDF refused: " + err.Error())
	}
	key := secret(out)
	clear(out)
	return &key
}

func secretPrint(s *secret) [secretPrintSize]byte {
	return [secretPrintSize]byte(s.derive("node secret print")[:])
}

func (n *nodeSecrets) wipe() {
	for _, s := range n.all {
		s.wipe()
	}
}
