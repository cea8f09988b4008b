package keyring

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
)

// KeysDir is the folder of the data directory that holds the master key and the
// copies of the keyring.
const KeysDir = "keys"

// Options says where a keyring is and how it may behave.
type Options struct {
	// Dir is the data directory; the keyring's files are in its folder keys.
	Dir string
	// AllowCreate lets Open make a keyring where there is none. Set it only
	// when the log is empty too, or a lost keyring is taken for a first start.
	AllowCreate bool
	// AllowNewStorage lets Open make storage keys where there are none beside a
	// keyring. Set it only when nothing is there that they encrypt.
	AllowNewStorage bool
	Store           Store        // default: a FileStore in Dir/keys
	Rand            io.Reader    // default: crypto/rand
	FS              FS           // default: OSFS
	Log             *slog.Logger // what was healed; default: discarded
	TermCache       int          // entries for all namespaces; default 131072, at about 100 bytes
}

func (o *Options) fill() error {
	if o.Dir == "" {
		return fmt.Errorf("open keyring: no directory given")
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.FS == nil {
		o.FS = OSFS{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Store == nil {
		o.Store = NewFileStore(o.keys(), o.FS, o.Log)
	}
	return nil
}

func (o *Options) keys() string { return filepath.Join(o.Dir, KeysDir) }

// Keyring holds all keys in memory. It is safe for concurrent use.
type Keyring struct {
	store Store
	rand  io.Reader
	macs  *macPool
	cache *termCache
	node  *DataKey

	storage *StorageKeys
	// write is held by one writer at a time, through its Save; no reader waits
	// for it. It guards table, mid, secrets and, with mu, the closing.
	write   sync.Mutex
	table   *table
	master  *secret
	mid     *secret
	secrets *nodeSecrets

	// mu guards what readers look at; it is never held during I/O.
	mu     sync.RWMutex
	lookup lookup
	closed bool
}

// lookup finds living keys. A nil value is a destroyed key.
type lookup struct {
	keys     map[KeyID]*DataKey
	subjects map[subjectRef]*DataKey
	spaces   map[NamespaceID]*NamespaceKeys
}

type subjectRef struct {
	ns  NamespaceID
	tag subjectTag
}

// Open reads the keyring, healing a damaged copy, or makes one if allowed. Errors:
// ErrNoKeyring, ErrMasterKeyLost, ErrDamaged, ErrNewerFormat, or the file system's.
func Open(opt Options) (*Keyring, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	image, err := opt.Store.Load()
	if err != nil {
		return nil, fmt.Errorf("open keyring: %w", err)
	}
	if image == nil && !opt.AllowCreate {
		return nil, fmt.Errorf("open keyring in %s: %w", opt.keys(), ErrNoKeyring)
	}
	master, err := readMaster(opt.FS, opt.keys())
	if err != nil {
		return nil, fmt.Errorf("open keyring: %w", err)
	}
	if image != nil && master == nil {
		return nil, fmt.Errorf("open keyring: %w: no %s", ErrMasterKeyLost, filepath.Join(opt.keys(), masterName))
	}
	k := &Keyring{
		store: opt.Store, rand: opt.Rand, master: master,
		macs: new(macPool), cache: newTermCache(opt.TermCache),
	}
	if image == nil {
		err = k.create(opt)
	} else if k.table, k.mid, err = openImage(image, master, k.macs, k.cache); err == nil {
		err = k.openSecrets(opt, opt.AllowNewStorage)
	}
	if err != nil {
		k.master.wipe()
		return nil, err
	}
	k.node = &DataKey{kind: kindNode, macs: k.macs, raw: k.master.derive("node key")}
	k.node.id = KeyID(k.master.derive("node key id")[:16])
	k.buildLookup()
	return k, nil
}

// create makes the first image. A master key that is there already, from a
// start that was cut short or from the operator, is used.
func (k *Keyring) create(opt Options) error {
	dir := opt.keys()
	if err := opt.FS.MkdirAll(dir); err != nil {
		return fmt.Errorf("create keyring: %w", err)
	}
	if err := opt.FS.SyncDir(opt.Dir); err != nil {
		return fmt.Errorf("create keyring: sync %s: %w", opt.Dir, err)
	}
	var err error
	if k.master == nil {
		if k.master, err = makeMaster(opt.FS, dir, opt.Rand); err != nil {
			return fmt.Errorf("create keyring: %w", err)
		}
	}
	// Before the image: where that is, these are too.
	if err := k.openSecrets(opt, true); err != nil {
		return err
	}
	cluster, err := k.newKey(NamespaceID{}, subjectTag{})
	if err != nil {
		return fmt.Errorf("create keyring: %w", err)
	}
	cluster.kind = kindCluster
	if k.mid, err = newSecret(opt.Rand); err != nil {
		return fmt.Errorf("create keyring: %w", err)
	}
	return k.save(&table{cluster: cluster}, k.mid)
}

// openSecrets reads the node's secret and the storage keys, or makes them.
func (k *Keyring) openSecrets(opt Options, create bool) (err error) {
	dir := opt.keys()
	k.secrets, err = openSecrets(newCopies(secretFormat, dir, opt.FS, opt.Log), opt.Rand, k.master)
	if err != nil {
		return fmt.Errorf("open node secret: %w", err)
	}
	return k.openStorage(newCopies(storageFormat, dir, opt.FS, opt.Log), create)
}

// buildLookup fills lookup from the table, at Open.
func (k *Keyring) buildLookup() {
	l := lookup{
		keys:     map[KeyID]*DataKey{k.node.id: k.node, k.table.cluster.id: k.table.cluster},
		subjects: make(map[subjectRef]*DataKey),
		spaces:   make(map[NamespaceID]*NamespaceKeys),
	}
	for _, s := range k.table.spaces {
		l.spaces[s.names.id] = s.names
		for _, grave := range s.dead {
			l.keys[grave.id] = nil
			l.subjects[subjectRef{s.names.id, grave.tag}] = nil
		}
		for _, d := range s.keys { // after the dead: a subject may have come back
			l.keys[d.id] = d
			l.subjects[subjectRef{s.names.id, d.tag}] = d
		}
	}
	for _, id := range k.table.deadSpaces {
		l.spaces[id] = nil
	}
	for _, id := range k.table.deadKeys {
		l.keys[id] = nil
	}
	for _, c := range k.table.combined {
		l.keys[c.id] = k.combinedKey(c, l.keys)
	}
	k.lookup = l
}

// DataKey finds a subject's key; subject "" is the namespace itself. Errors:
// ErrNoKey, ErrDestroyed, ErrClosed.
func (k *Keyring) DataKey(ns NamespaceID, subject string) (*DataKey, error) {
	names, err := k.Namespace(ns)
	if err != nil {
		return nil, err
	}
	ref := subjectRef{ns, names.tag(subject)}
	k.mu.RLock()
	defer k.mu.RUnlock()
	d, ok := k.lookup.subjects[ref]
	if d == nil {
		return nil, fmt.Errorf("find a subject's key in namespace %s: %w", hexID(ns), k.absentLocked(ok))
	}
	return d, nil
}

// KeyByID finds any key: data, combined, cluster or node. Errors: ErrNoKey,
// ErrDestroyed, ErrClosed.
func (k *Keyring) KeyByID(id KeyID) (*DataKey, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	d, ok := k.lookup.keys[id]
	if d == nil {
		return nil, fmt.Errorf("find key %s: %w", id, k.absentLocked(ok))
	}
	return d, nil
}

// Namespace finds a namespace's hashing keys. Errors: ErrNoKey, ErrDestroyed, ErrClosed.
func (k *Keyring) Namespace(ns NamespaceID) (*NamespaceKeys, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	names, ok := k.lookup.spaces[ns]
	if names == nil {
		return nil, fmt.Errorf("find keys of namespace %s: %w", hexID(ns), k.absentLocked(ok))
	}
	return names, nil
}

// absentLocked says why a lookup has no key; known: it has an empty entry.
func (k *Keyring) absentLocked(known bool) error {
	switch {
	case k.closed:
		return ErrClosed
	case known:
		return ErrDestroyed
	}
	return ErrNoKey
}

// Node is the key for what never leaves this node. It is derived from the
// master key, so it needs no image and cannot be destroyed.
func (k *Keyring) Node() *DataKey { return k.node }

// Cluster is the key for directory events.
func (k *Keyring) Cluster() *DataKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.table.cluster
}

// Close wipes all keys from memory, after the calls that use them now. Every
// later call gives ErrClosed, every handle acts as DataKey says.
func (k *Keyring) Close() error {
	k.write.Lock()
	defer k.write.Unlock()
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil
	}
	old := k.lookup
	k.closed, k.lookup = true, lookup{}
	k.mu.Unlock()
	for _, d := range old.keys {
		if d != nil {
			d.wipe(ErrClosed)
		}
	}
	for _, names := range old.spaces {
		if names != nil {
			names.wipe()
		}
	}
	k.storage.table.Store(nil)
	k.secrets.wipe()
	k.master.wipe()
	k.mid.wipe()
	return nil
}

// String tells nothing.
func (k *Keyring) String() string { return "keyring(redacted)" }

// GoString is String.
func (k *Keyring) GoString() string { return k.String() }

// Format prints String for every verb.
func (k *Keyring) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue is String.
func (k *Keyring) LogValue() slog.Value { return slog.StringValue(k.String()) }

func hexID(id [16]byte) string { return hex.EncodeToString(id[:]) }
