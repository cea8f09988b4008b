package backup

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// manifestFormat is raised when an older program would misread a manifest. Those of format 1
// are not authenticated, and are not read. One that names former clusters has format 3; to
// programs that know none it would be of a foreign one.
const (
	manifestFormat     = 3
	manifestFormatFrom = 2
)

// maxFormer bounds how many former clusters a manifest names.
const maxFormer = 1000

// manifestLabel keeps the MAC of a manifest apart from others.
const manifestLabel = "manifest of a backup"

// errForged is what a manifest is bad for that holders of the cluster's keys did not write.
var errForged = errors.New("it was not written by who had the keys of the cluster")

// The folders of a place. Keys lie in another place than the rest.
const (
	folderManifests = "backups"
	folderLog       = "log"
	folderDestroyed = "destroyed"
	folderKeys      = "keys"
)

var folders = []string{folderManifests, folderLog, folderDestroyed, folderKeys}

// Manifest is what makes files a backup.
type Manifest struct {
	ID       string    `json:"id"`
	Parent   string    `json:"parent,omitempty"` // the backup that it goes on from
	Cluster  string    `json:"cluster_id"`
	Former   []string  `json:"former,omitempty"` // clusters that this one goes on from, ascending
	MadeAt   time.Time `json:"made_at"`
	Version  string    `json:"version"` // of the program that made it
	Pipeline uint32    `json:"pipeline_version,omitempty"`
	Shards   []Range   `json:"shards"` // by number
	Log      FileRef   `json:"log"`
	// Destroyed is the list of what was destroyed, which is named by its hash.
	Destroyed FileRef `json:"destroyed"`
	Keys      FileRef `json:"keys"`

	said, mac []byte // what was read, and its MAC
}

// Range is what a backup holds of the log of one shard.
type Range struct {
	After     Mark   `json:"after"`
	End       Mark   `json:"end"`
	Position  string `json:"position"`
	StateHash string `json:"state_hash,omitempty"` // at the end; "" where it is not known
	Events    uint64 `json:"events"`
}

func (m *Manifest) logName() string       { return folderLog + "/" + m.ID + ".log" }
func (m *Manifest) keysName() string      { return folderKeys + "/" + m.ID + ".keys" }
func (m *Manifest) destroyedName() string { return destroyedName(m.Destroyed) }
func (m *Manifest) name() string          { return folderManifests + "/" + m.ID + ".json" }

func destroyedName(ref FileRef) string { return folderDestroyed + "/" + ref.SHA256 + ".json" }

// Position is where it ends, of several shards one for each, separated by commas.
func (m *Manifest) Position() string {
	all := make([]string, len(m.Shards))
	for i, s := range m.Shards {
		all[i] = s.Position
	}
	return strings.Join(all, ",")
}

// Events is how many events its range of the log holds.
func (m *Manifest) Events() (n uint64) {
	for _, s := range m.Shards {
		n += s.Events
	}
	return n
}

// ends are the marks that the next backup goes on from.
func (m *Manifest) ends() []Mark {
	all := make([]Mark, len(m.Shards))
	for i, s := range m.Shards {
		all[i] = s.End
	}
	return all
}

func (m *Manifest) entry() memory.BackupEntry {
	return memory.BackupEntry{ID: m.ID, Parent: m.Parent, Cluster: m.Cluster, MadeAt: m.MadeAt, Position: m.Position(), Events: m.Events(), Bytes: m.Log.Bytes}
}

var validID = regexp.MustCompile(`^\d{8}T\d{6}Z-[a-z0-9]{6}$`)

func newID(now time.Time) string {
	return now.UTC().Format("20060102T150405Z") + "-" + strings.ToLower(rand.Text()[:6])
}

// sealed is the file of a manifest: it carries the hash of what it says, and a MAC, which
// only who has the keys can check. A manifest names its list by hash, so the MAC is over both.
type sealed struct {
	Format   int             `json:"format"`
	SHA256   string          `json:"sha256"`
	MAC      string          `json:"mac"`
	Manifest json.RawMessage `json:"manifest"`
}

func (m *Manifest) encode(keys *keyring.BackupHead) ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	format := manifestFormatFrom
	if len(m.Former) > 0 {
		format = manifestFormat
	}
	sum, mac := sha256.Sum256(b), keys.MAC(manifestLabel, b)
	b, err = json.Marshal(sealed{Format: format, SHA256: hex.EncodeToString(sum[:]), MAC: hex.EncodeToString(mac[:]), Manifest: b})
	return append(b, '\n'), err
}

// authentic checks that who wrote a manifest had the keys of its cluster.
func (m *Manifest) authentic(keys *keyring.BackupHead) error {
	want := keys.MAC(manifestLabel, m.said)
	if !keys.Complete() || !hmac.Equal(want[:], m.mac) {
		return errForged
	}
	return nil
}

// decodeManifest reads the manifest of a backup. Errors: ErrNotIntact, events.ErrNewer,
// events.ErrOlder.
func decodeManifest(id string, b []byte) (m Manifest, err error) {
	var s sealed
	if err := json.Unmarshal(b, &s); err != nil {
		return m, fmt.Errorf("it is cut, or no manifest: %w: %w", err, ErrNotIntact)
	}
	if s.Format > manifestFormat {
		return m, fmt.Errorf("manifest format %d: %w", s.Format, events.ErrNewer)
	}
	if s.Format < manifestFormatFrom {
		return m, fmt.Errorf("manifest format %d: %w", s.Format, events.ErrOlder)
	}
	sum := sha256.Sum256(s.Manifest)
	if hex.EncodeToString(sum[:]) != s.SHA256 {
		return m, fmt.Errorf("its checksum differs: %w", ErrNotIntact)
	}
	dec := json.NewDecoder(bytes.NewReader(s.Manifest))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, fmt.Errorf("%w: %w", err, ErrNotIntact)
	}
	if m.mac, err = hex.DecodeString(s.MAC); err != nil {
		return m, fmt.Errorf("its MAC is none: %w", ErrNotIntact)
	}
	m.said = s.Manifest
	if m.ID != id {
		return m, fmt.Errorf("it is the manifest of %s: %w", m.ID, ErrNotIntact)
	}
	if len(m.Shards) == 0 || len(m.Shards) > MaxShards || m.Parent != "" && !validID.MatchString(m.Parent) {
		return m, fmt.Errorf("it says nothing that is a backup: %w", ErrNotIntact)
	}
	if len(m.Former) > maxFormer || !slices.IsSorted(m.Former) || slices.Contains(m.Former, m.Cluster) {
		return m, fmt.Errorf("it goes on from itself, or from too many clusters: %w", ErrNotIntact)
	}
	for i, s := range m.Shards {
		if int(s.After.Shard) != i || int(s.End.Shard) != i || s.End.Seq < s.After.Seq {
			return m, fmt.Errorf("its ranges are none: %w", ErrNotIntact)
		}
	}
	return m, nil
}

// Set is what a place holds.
type Set struct {
	place   Place
	Backups []Manifest // by era, oldest first
	Bad     []Bad
	pruned  map[string]Manifest // backups that are going
	// keepKeys keeps the keys of those that are going unless the newest hold all of them.
	keepKeys bool
	lineage
}

// Bad is a manifest that cannot be read.
type Bad struct {
	ID  string
	Err error
}

// ReadSet reads the manifests of a place.
func ReadSet(ctx context.Context, place Place) (*Set, error) {
	files, err := place.List(ctx, folderManifests)
	if err != nil {
		return nil, err
	}
	set := &Set{place: place}
	for _, f := range files {
		id, is := strings.CutSuffix(path.Base(f.Name), ".json")
		if !is || !validID.MatchString(id) {
			continue
		}
		m, err := readManifest(ctx, place, f.Name, id)
		switch {
		case errors.Is(err, ErrNotIntact), events.IsForeign(err):
			set.Bad = append(set.Bad, Bad{ID: id, Err: err})
		case err != nil:
			return nil, err
		default:
			set.Backups = append(set.Backups, m)
		}
	}
	set.arrange()
	return set, nil
}

const maxManifest = 1 << 20

func readManifest(ctx context.Context, place Place, name, id string) (Manifest, error) {
	r, err := place.Open(ctx, name)
	if err != nil {
		return Manifest{}, err
	}
	b, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return Manifest{}, err
	}
	if len(b) > maxManifest {
		return Manifest{}, fmt.Errorf("it has more than %d bytes: %w", maxManifest, ErrNotIntact)
	}
	return decodeManifest(id, b)
}

// authenticate takes the manifests out that were written without the keys of their cluster.
func (s *Set) authenticate(keys *keyring.BackupHead) {
	s.Backups = slices.DeleteFunc(s.Backups, func(m Manifest) bool {
		err := m.authentic(keys)
		if err != nil {
			s.Bad = append(s.Bad, Bad{ID: m.ID, Err: err})
		}
		return err != nil
	})
	s.arrange()
}

func (s *Set) byID(id string) *Manifest {
	for i := range s.Backups {
		if s.Backups[i].ID == id {
			return &s.Backups[i]
		}
	}
	return nil
}

// newest is that of the present era.
func (s *Set) newest() *Manifest {
	if len(s.Backups) == 0 {
		return nil
	}
	return &s.Backups[len(s.Backups)-1]
}

// damaged reports whether the manifest of a backup is there and cannot be read.
func (s *Set) damaged(id string) bool {
	return slices.ContainsFunc(s.Bad, func(b Bad) bool { return b.ID == id })
}

// chain gives the backups that one is made of, the full one first. A problem is that of
// one link.
func (s *Set) chain(m *Manifest) ([]*Manifest, *memory.BackupProblem) {
	all := []*Manifest{m}
	for m.Parent != "" {
		parent := s.byID(m.Parent)
		if parent == nil || len(all) > len(s.Backups) {
			return nil, &memory.BackupProblem{Backup: m.ID, Kind: memory.BackupMissing, Detail: "it goes on from " + m.Parent + ", which is not here or cannot be read"}
		}
		if p := meet(parent, m); p != nil {
			return nil, p
		}
		m = parent
		all = append(all, m)
	}
	if p := meet(nil, m); p != nil {
		return nil, p
	}
	slices.Reverse(all)
	return all, nil
}

// meet looks whether a backup goes on from another one; from nothing where that is nil.
func meet(parent, m *Manifest) *memory.BackupProblem {
	if parent != nil && parent.Cluster != m.Cluster {
		return &memory.BackupProblem{Backup: m.ID, Kind: memory.BackupForeign, Detail: fmt.Sprintf("it is of the cluster %s and goes on from %s, which is of %s", m.Cluster, parent.ID, parent.Cluster)}
	}
	for i, s := range m.Shards {
		from := Mark{Shard: s.After.Shard}
		if parent != nil && i < len(parent.Shards) {
			from = parent.Shards[i].End
		}
		if !s.After.meets(from) || parent != nil && len(parent.Shards) != len(m.Shards) {
			return &memory.BackupProblem{Backup: m.ID, Kind: memory.BackupBroken, Detail: fmt.Sprintf("shard %d: it goes on from message %d, and what is before it ends at %d or is another log", i, s.After.Seq, from.Seq)}
		}
	}
	return nil
}

// log is the log that backups which go on from each other hold together.
func (s *Set) log(chain []*Manifest) Log {
	out := Log{Name: fmt.Sprintf("the backup %s in %s", chain[len(chain)-1].ID, s.place)}
	for _, m := range chain {
		out.Files = append(out.Files, File{Name: m.logName(), Open: func(ctx context.Context) (io.ReadCloser, error) {
			return openAs(ctx, s.place, m.logName(), m.Log)
		}})
	}
	return out
}
