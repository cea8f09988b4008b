package keyring

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
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
	// Group says that a group orders the commands, see SetProposer: until it is there,
	// commands are refused as unavailable. Without it they are applied here, at once.
	Group bool
	// Blank, with Group, lets a keyring that Open makes hold no keys: it gets all of
	// them by Restore and until then refuses everything with ErrBlank.
	Blank  bool
	Master MasterSource // default: a file in Dir/keys, made with the keyring
	Rand   io.Reader    // default: crypto/rand
	FS     vfs.FS       // default: vfs.Default
	Log    *slog.Logger // what was healed; default: discarded
}

func (o *Options) fill() error {
	if o.Dir == "" {
		return fmt.Errorf("open keyring: no directory given")
	}
	if o.Blank && !o.Group {
		return fmt.Errorf("open keyring: a blank one is filled by its group: Options.Group is missing")
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	o.Rand = &sharedReader{r: o.Rand}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (o *Options) keys() string { return filepath.Join(o.Dir, KeysDir) }

// sharedReader lets several callers draw from one source.
type sharedReader struct {
	mu sync.Mutex
	r  io.Reader
}

// Read implements io.Reader.
func (s *sharedReader) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return io.ReadFull(s.r, b)
}

// Keyring holds all keys in memory. It is safe for concurrent use.
type Keyring struct {
	rand    io.Reader
	macs    *macPool
	node    *DataKey
	storage *StorageKeys
	grouped bool // commands come from a group

	// write is held by one writer at a time, while it writes files; no reader
	// waits for it. It guards what follows; state and lookup are changed under
	// mu as well.
	write   sync.Mutex
	file    *journal
	master  *secret
	origin  *Options // where master came from
	secrets *nodeSecrets

	// mu guards what readers look at; it is never held during I/O.
	mu sync.RWMutex
	state
	lookup   lookup
	proposer Proposer
	moved    signal // the index moves
	closed   bool
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

// Exists reports whether there is a keyring in a data directory, whole or not. A
// master key alone is none, and neither is what a first start that was cut short
// has left: nothing can have been sealed yet.
func Exists(fsys vfs.FS, dir string) (bool, error) {
	for _, name := range []string{primaryName, secondaryName} {
		_, err := fsys.Stat(filepath.Join(dir, KeysDir, name))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("look for a keyring: %w", err)
		}
	}
	return false, nil
}

// Open reads the keyring, healing a damaged copy, or makes one if allowed. Errors:
// ErrNoKeyring, ErrMasterKeyLost, ErrMode, ErrNodeSecretLost,
// ErrStorageKeysLost, ErrDamaged, ErrNewerFormat, ErrOlderFormat, or the file
// system's.
func Open(opt Options) (*Keyring, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	if err := checkModes(&opt); err != nil {
		return nil, fmt.Errorf("open keyring: %w", err)
	}
	k := &Keyring{
		rand: opt.Rand, macs: new(macPool),
		file: newJournal(ringFormat, &opt), grouped: opt.Group,
	}
	k.proposer = alone{k}
	if opt.Group {
		k.proposer = nobody{}
	}
	image, records, err := k.file.load()
	if err != nil {
		return nil, fmt.Errorf("open keyring: %w", err)
	}
	if image == nil && !opt.AllowCreate {
		return nil, fmt.Errorf("open keyring in %s: %w", opt.keys(), ErrNoKeyring)
	}
	if k.master, err = masterKey(&opt, image); err != nil {
		return nil, fmt.Errorf("open keyring: %w", err)
	}
	k.origin = &opt
	k.node = &DataKey{kind: kindNode, macs: k.macs, raw: k.master.derive("node key")}
	k.node.id = KeyID(k.master.derive("node key id")[:16])
	if image == nil {
		err = k.create(&opt)
	} else {
		err = k.read(&opt, image, records)
	}
	if err != nil {
		k.master.wipe()
		return nil, fmt.Errorf("open keyring: %w", err)
	}
	return k, nil
}

// create makes the first state. What is there already, from a start that was cut
// short or from the operator, is used.
func (k *Keyring) create(opt *Options) error {
	if err := storage.MkdirAll(opt.FS, opt.keys(), keysDirMode); err != nil {
		return err
	}
	if err := k.openSecrets(opt); err != nil {
		return err
	}
	if len(k.secrets.all) == 0 {
		if err := k.secrets.begin(); err != nil {
			return err
		}
	}
	s, err := blankState(), error(nil)
	if !opt.Blank {
		s, err = k.firstState()
	}
	if err != nil {
		return err
	}
	k.state, k.lookup = *s, newLookup(s.table, k.macs)
	if err := k.openStorage(newJournal(storageFormat, opt), true); err != nil {
		return err
	}
	// Last: where the image is, the rest is too.
	return k.cut(&k.state)
}

// firstState draws the keys that a keyring begins with.
func (k *Keyring) firstState() (*state, error) {
	own, err := k.newKey(subjectTag{})
	if err != nil {
		return nil, err
	}
	cluster := &DataKey{id: own.id, kind: kindCluster, macs: k.macs, raw: own.raw}
	command, err := newSecret(k.rand)
	if err != nil {
		return nil, err
	}
	return &state{cursor: firstCursor, changed: firstCursor.index, command: command, table: &table{cluster: cluster}}, nil
}

// read opens the image and brings the records behind it.
func (k *Keyring) read(opt *Options, image []byte, records [][]byte) error {
	if err := k.openSecrets(opt); err != nil {
		return err
	}
	if len(k.secrets.all) == 0 {
		return fmt.Errorf("%w: no %s", ErrNodeSecretLost, secretFormat.name)
	}
	plain, err := k.secrets.unwrap(imageVersion, imageLabel, image)
	if err != nil {
		return err
	}
	defer clear(plain)
	s, err := decodeState(plain, k.macs)
	if err != nil {
		return err
	}
	k.state, k.lookup = *s, newLookup(s.table, k.macs)
	for i, record := range records {
		if err := k.replay(record); err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
	}
	if err := k.openStorage(newJournal(storageFormat, opt), opt.AllowNewStorage); err != nil {
		return err
	}
	if !k.secrets.unfinished() {
		return nil
	}
	return k.rewrap(&k.state, k.storage.table.Load()) // a destruction was cut short
}

// replay brings a command that the file kept. It must come to what it came to then.
func (k *Keyring) replay(record []byte) error {
	if len(record) < cursorSize {
		return fmt.Errorf("%w: %d bytes", ErrDamaged, len(record))
	}
	at := decodeCursor(record)
	if k.state.blank() || at.index <= k.state.index {
		return fmt.Errorf("%w: command %d behind command %d", ErrDamaged, at.index, k.state.index)
	}
	e, err := k.judge(record[cursorSize:])
	if err != nil {
		return err
	}
	if e.table == nil || e.next != nil {
		return fmt.Errorf("%w: command %d changes nothing, or ends keys", ErrDamaged, at.index)
	}
	k.land(at, e)
	return nil
}

func (k *Keyring) openSecrets(opt *Options) (err error) {
	k.secrets, err = openSecrets(newJournal(secretFormat, opt), opt.Rand, k.master)
	if err != nil {
		return fmt.Errorf("open node secret: %w", err)
	}
	return nil
}

// newLookup finds what a table holds.
func newLookup(t *table, macs *macPool) lookup {
	l := lookup{
		keys:     make(map[KeyID]*DataKey),
		subjects: make(map[subjectRef]*DataKey),
		spaces:   make(map[NamespaceID]*NamespaceKeys),
	}
	if t.cluster != nil { // else it is blank
		l.keys[t.cluster.id] = t.cluster
	}
	for _, s := range t.spaces {
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
	for _, id := range t.deadSpaces {
		l.spaces[id] = nil
	}
	for _, id := range t.deadKeys {
		l.keys[id] = nil
	}
	for _, c := range t.combined {
		l.keys[c.id] = combinedKey(c, l.keys, macs)
	}
	return l
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
	if id == k.node.id && !k.closed {
		return k.node, nil
	}
	d, ok := k.lookup.keys[id]
	if d == nil {
		return nil, fmt.Errorf("find key %s: %w", id, k.absentLocked(ok))
	}
	return d, nil
}

// SubjectKeys visits the keys of subjects that are not destroyed, namespace by
// namespace.
func (k *Keyring) SubjectKeys(visit func(ns NamespaceID, id KeyID)) {
	k.mu.RLock()
	spaces := k.table.spaces // never changed in place
	k.mu.RUnlock()
	for _, s := range spaces {
		for _, d := range s.keys {
			if d.tag != (subjectTag{}) {
				visit(s.names.id, d.id)
			}
		}
	}
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
	case k.state.blank():
		return ErrBlank
	case known:
		return ErrDestroyed
	}
	return ErrNoKey
}

// Node is the key for what never leaves this node. It is derived from the
// master key, so it needs no image and cannot be destroyed.
func (k *Keyring) Node() *DataKey { return k.node }

// Cluster is the key for directory events. It panics on a blank keyring: whoever
// seals there would do so with no key.
func (k *Keyring) Cluster() *DataKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.state.blank() {
		panic("keyring: the cluster key was asked for before the cluster's keys came")
	}
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
	k.moved.wake()
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
	k.node.wipe(ErrClosed)
	k.storage.table.Store(nil)
	k.secrets.wipe()
	k.master.wipe()
	k.command.wipe()
	return nil
}

// String tells nothing.
func (k *Keyring) String() string { return "keyring(redacted)" }

// Format prints String for every verb.
func (k *Keyring) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue is String.
func (k *Keyring) LogValue() slog.Value { return slog.StringValue(k.String()) }

func hexID(id [16]byte) string { return hex.EncodeToString(id[:]) }
