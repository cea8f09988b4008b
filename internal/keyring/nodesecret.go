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
	file   *journal
	rand   io.Reader
	master *secret
	all    []*secret // the last is current
}

// openSecrets reads the file; without one, all is empty.
func openSecrets(file *journal, rand io.Reader, master *secret) (*nodeSecrets, error) {
	n := &nodeSecrets{file: file, rand: rand, master: master}
	image, _, err := file.load()
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
	return n.file.cut(image)
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

// The image of a wrapped file:
//
//	 0      1             9             17         29              n
//	├──────┼─────────────┼─────────────┼──────────┼───────────────┤
//	│vers. │ master key  │ node secret │ nonce    │ content,      │
//	│      │ fingerprint │ print       │          │ sealed        │
//	└──────┴─────────────┴─────────────┴──────────┴───────────────┘
//
// sealed with AES-256-GCM under the wrapping key for the file's label, with
// bytes 0 to 16 as additional data.
const (
	wrappedAAD     = 1 + fingerprintSize + secretPrintSize
	wrappedMinimum = wrappedAAD + nonceSize + tagSize
)

// wrap seals plain under the current secret.
func (n *nodeSecrets) wrap(version byte, label string, plain []byte) ([]byte, error) {
	var nonce [nonceSize]byte
	if _, err := io.ReadFull(n.rand, nonce[:]); err != nil {
		return nil, fmt.Errorf("seal %s: read randomness: %w", label, err)
	}
	current := n.all[len(n.all)-1]
	key, print := n.combine(current, label), secretPrint(current)
	defer key.wipe()
	b := make([]byte, 0, wrappedMinimum+len(plain))
	b = append(append(b, version), fingerprint(n.master)...)
	b = append(append(b, print[:]...), nonce[:]...)
	return newGCM(key).Seal(b, nonce[:], plain, b[:wrappedAAD]), nil
}

// unwrap is wrap's inverse. Errors: ErrNewerFormat, ErrMasterKeyLost where
// another master key was used, ErrDamaged.
func (n *nodeSecrets) unwrap(version byte, label string, image []byte) ([]byte, error) {
	if len(image) > 0 && image[0] > version {
		return nil, fmt.Errorf("%w: version %d, known %d", ErrNewerFormat, image[0], version)
	}
	if len(image) < wrappedMinimum || image[0] != version {
		return nil, fmt.Errorf("%w: no image of version %d", ErrDamaged, version)
	}
	if string(image[1:1+fingerprintSize]) != string(fingerprint(n.master)) {
		return nil, fmt.Errorf("%w: %s: sealed under another one", ErrMasterKeyLost, label)
	}
	key, err := n.wrapping(label, [secretPrintSize]byte(image[1+fingerprintSize:wrappedAAD]))
	if err != nil {
		return nil, err
	}
	defer key.wipe()
	sealed := image[wrappedAAD:]
	plain, err := newGCM(key).Open(nil, sealed[:nonceSize], sealed[nonceSize:], image[:wrappedAAD])
	if err != nil {
		return nil, fmt.Errorf("%w: %s: seal broken", ErrDamaged, label)
	}
	return plain, nil
}

// wrapping finds the wrapping key of a file by the print that it names.
func (n *nodeSecrets) wrapping(label string, print [secretPrintSize]byte) (*secret, error) {
	for _, s := range n.all {
		if secretPrint(s) == print {
			return n.combine(s, label), nil
		}
	}
	return nil, fmt.Errorf("%w: %w: %s: sealed under another node secret", ErrNodeSecretLost, ErrDamaged, label)
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
