package node

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/gofrs/flock"

	"mneme/internal/cluster"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/storage"
)

// dataDir is the folder that holds everything of a node, locked against other
// processes.
type dataDir struct {
	fs    vfs.FS
	path  string
	lock  *dirLock
	mu    sync.Mutex // held while the file is written, and what a cluster's node learns is read
	id    string     // of the node of a cluster that is to use it; "" = a node on its own
	node  nodeFile
	fresh bool // nothing was ever written to it
	// recovers: an interrupted recovery is no reason to refuse the folder.
	recovers bool
}

// nodeFile is node.json: what the folder belongs to.
type nodeFile struct {
	Format    int    `json:"format"`
	NodeID    string `json:"node_id"`
	ClusterID string `json:"cluster_id"`
	Mode      string `json:"mode"` // "standalone" or "cluster": neither may be opened as the other
	// Shards is how many shards a node on its own has; 0 is 1. Of several nodes the
	// cluster's number counts.
	Shards int `json:"shards,omitempty"`
	// Cluster is what a node of several knows of itself and of the others.
	Cluster *cluster.Facts `json:"cluster,omitempty"`
	// Former are the clusters that a node on its own goes on from, as of a place of backups that
	// it was restored from.
	Former []string `json:"former,omitempty"`
	// LogURL is where the external NATS is that keeps the log, without
	// credentials; "" is the one in the folder.
	LogURL string `json:"log_url,omitempty"`
	// Recovering says that `memctl cluster recover`, or `memctl cluster init`, has begun
	// and not ended.
	Recovering *recovering `json:"recovering,omitempty"`
	// Check tells a damaged identity from a foreign one: the first 8 bytes of
	// SHA-256 over the other fields, in hex.
	Check string `json:"check"`
}

func (f nodeFile) check() string {
	text := fmt.Appendf(nil, "%d\x00%s\x00%s\x00%s", f.Format, f.NodeID, f.ClusterID, f.Mode)
	if f.Shards != 0 {
		text = fmt.Appendf(text, "\x00shards %d", f.Shards)
	}
	if len(f.Former) > 0 {
		text = fmt.Appendf(text, "\x00former %s", strings.Join(f.Former, " "))
	}
	if f.LogURL != "" {
		text = append(append(text, 0), f.LogURL...)
	}
	if f.Cluster != nil {
		facts, err := json.Marshal(f.Cluster)
		if err != nil {
			panic(fmt.Sprintf("node.json: %v", err)) // strings and a flag
		}
		text = append(append(text, 0), facts...)
	}
	if f.Recovering != nil {
		text = fmt.Appendf(append(text, 0), "%+v", *f.Recovering)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

const (
	// Format 2 names clusters that this one was made of; a file that names none is of format 1,
	// which earlier versions read.
	nodeFormat     = 2
	nodeFormatFrom = 1
	modeStandalone = "standalone"
	modeCluster    = "cluster"
	lockFile       = "LOCK"
	nodeJSON       = "node.json"
	nodeCopy       = "node.json.copy"
	// In the folder of a shard:
	stateDir   = "state"
	vectorsDir = "vectors"
)

func (d *dataDir) keys() string             { return d.path }
func (d *dataDir) nats() string             { return filepath.Join(d.path, "nats") }
func (d *dataDir) shard(n uint16) string    { return filepath.Join(d.path, "shards", fmt.Sprint(n)) }
func (d *dataDir) state(n uint16) string    { return filepath.Join(d.shard(n), stateDir) }
func (d *dataDir) vectors(n uint16) string  { return filepath.Join(d.shard(n), vectorsDir) }
func (d *dataDir) keyGroup() string         { return filepath.Join(d.path, "keys", "raft") }
func (d *dataDir) erased() string           { return filepath.Join(d.path, "erased.json") }
func (d *dataDir) logs() string             { return filepath.Join(d.path, "logs") }
func (d *dataDir) remembered() string       { return filepath.Join(d.path, "remembered") }
func (d *dataDir) aside(name string) string { return filepath.Join(d.path, "aside", name) }
func (d *dataDir) tokenFile() string        { return filepath.Join(d.path, "keys", "operator.token") }

// dirLock is the lock of a data directory. Whoever wants to change what is in one
// takes it first and holds it to the end, a restore too. Its file is never removed:
// another file in its place would be another lock.
type dirLock struct {
	fs   vfs.FS
	path string
	file *flock.Flock
}

// lockDataDir makes the folder if it is not there and locks it.
func lockDataDir(fsys vfs.FS, path string) (*dirLock, error) {
	if err := secureDir(fsys, path); err != nil {
		return nil, err
	}
	if err := storage.MkdirAll(fsys, path, 0o700); err != nil {
		return nil, readOnly(path, err)
	}
	if err := storage.MkdirAll(nil, path, 0o700); err != nil { // for the lock, if fsys is not the system's
		return nil, readOnly(path, err)
	}
	l := &dirLock{fs: fsys, path: path, file: flock.New(filepath.Join(path, lockFile), flock.SetPermissions(0o600))}
	ok, err := l.file.TryLock()
	if err != nil {
		return nil, readOnly(path, err)
	}
	if !ok {
		return nil, &StartError{Kind: StartInUse, Message: fmt.Sprintf("data directory %s is in use by another memnode or memctl", path),
			Hint: "stop it or let it end first, or choose another --data-dir"}
	}
	return l, nil
}

func (l *dirLock) unlock() error { return l.file.Unlock() }

// openDataDir locks the folder and reads or writes node.json. id is the node's in its
// cluster; "" is a node on its own. mustExist refuses to make a new one.
func openDataDir(fsys vfs.FS, path, id string, ids *events.IDSource, mustExist bool) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, usage(fmt.Sprintf("data directory %q: %v", path, err), "")
	}
	if _, err := fsys.Stat(filepath.Join(path, nodeJSON)); mustExist && errors.Is(err, fs.ErrPermission) {
		return nil, usage(fmt.Sprintf("data directory %s cannot be read: permission denied", path), "run this as the user who runs memnode")
	}
	if mustExist && !hasAny(fsys, path, nodeJSON, nodeCopy, restoringMark) {
		return nil, usage(fmt.Sprintf("%s is not a data directory", path), "give the --data-dir that memnode used")
	}
	if err := refuseForeign(fsys, path); err != nil {
		return nil, err
	}
	lock, err := lockDataDir(fsys, path)
	if err != nil {
		return nil, err
	}
	err = refuseHalfRestored(fsys, path) // a restore may have begun before the lock was taken
	var d *dataDir
	if err == nil {
		d, err = lock.open(id, ids, mustExist)
	}
	if err != nil {
		return nil, errors.Join(err, lock.unlock())
	}
	return d, nil
}

// nobodys reports whether a file is neither a node's nor somebody's who must be asked: what
// a mounted volume has of its own, and a configuration that waits for the first start.
func nobodys(name string) bool {
	return strings.HasPrefix(name, ".") || name == "lost+found" || name == "config.yaml"
}

// refuseForeign refuses somebody's folder in which nothing is a node's.
func refuseForeign(fsys vfs.FS, path string) error {
	names, err := fsys.List(path)
	if err != nil || hasAny(fsys, path, lockFile, nodeJSON, nodeCopy, restoringMark, "keys", "nats", "shards") {
		return nil
	}
	slices.Sort(names)
	for _, name := range names {
		if !nobodys(name) {
			return usage(fmt.Sprintf("%s holds %s and nothing of a node", path, name), "name an empty directory, or one that does not exist yet")
		}
	}
	return nil
}

func hasAny(fsys vfs.FS, dir string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := fsys.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// open reads or writes node.json of a folder that is locked.
func (l *dirLock) open(id string, ids *events.IDSource, mustExist bool) (*dataDir, error) {
	d := &dataDir{fs: l.fs, path: l.path, lock: l, id: id}
	if !mustExist { // else it is only looked at
		if err := errors.Join(d.probe(), d.sweep()); err != nil {
			return nil, readOnly(d.path, err)
		}
	}
	if err := d.readNode(ids); err != nil {
		return nil, err
	}
	return d, nil
}

// sweep removes what a crash left of files that were being replaced.
func (d *dataDir) sweep() error {
	var err error
	dirs := []string{d.path, filepath.Join(d.path, "keys"), d.logs()}
	shards, _ := d.fs.List(filepath.Join(d.path, "shards")) // where there are none nothing is left of them
	for _, shard := range shards {
		if _, err := strconv.ParseUint(shard, 10, 16); err != nil {
			continue // somebody else's
		}
		dir := filepath.Join(d.path, "shards", shard)
		dirs = append(dirs, dir, filepath.Join(dir, stateDir), filepath.Join(dir, vectorsDir))
	}
	for _, dir := range dirs {
		err = errors.Join(err, storage.Sweep(d.fs, dir))
	}
	return err
}

// probe writes into the folder. Where that cannot be done, everything that follows
// would fail with an error that says less.
func (d *dataDir) probe() error {
	name := filepath.Join(d.path, ".probe") // a crash may leave it; the next start takes it away
	f, err := d.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), d.fs.Remove(name))
}

func readOnly(path string, err error) error {
	why := err
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		why = file.Err
	}
	return &StartError{Kind: StartReadOnly, Message: fmt.Sprintf("data directory %s cannot be written: %v", path, why),
		Hint: "choose a directory that this user may write to", Err: err}
}

// readNode reads node.json, or its copy where that is missing or damaged, and
// heals one from the other.
func (d *dataDir) readNode(ids *events.IDSource) error {
	node, err := readNodeFile(d.fs, filepath.Join(d.path, nodeJSON))
	spare, spareErr := readNodeFile(d.fs, filepath.Join(d.path, nodeCopy))
	switch {
	case err == nil && spareErr == nil && node.Check == spare.Check:
		d.node = node
	case err == nil:
		d.node = node
		return d.afterRead(d.writeNode())
	case spareErr == nil:
		d.node = spare
		return d.afterRead(d.writeNode())
	case errors.Is(err, os.ErrNotExist) && errors.Is(spareErr, os.ErrNotExist):
		if d.hasData() {
			return &StartError{Kind: StartDamaged, Message: fmt.Sprintf("%s holds data but no %s", d.path, nodeJSON),
				Hint: "put the file back from a backup of the folder, or choose another --data-dir"}
		}
		d.fresh = true
		d.node = nodeFile{Format: nodeFormatFrom, NodeID: ids.New().String(), ClusterID: ids.New().String(), Mode: modeStandalone}
		if d.id != "" {
			d.node = nodeFile{Format: nodeFormatFrom, NodeID: d.id, Mode: modeCluster, Cluster: &cluster.Facts{ID: d.id, Incarnation: newIncarnation(ids)}}
		}
		return d.writeNode()
	case errors.Is(err, errNodeDamaged) || errors.Is(spareErr, errNodeDamaged):
		return &StartError{Kind: StartDamaged, Message: fmt.Sprintf("%s and its copy are damaged", filepath.Join(d.path, nodeJSON)),
			Hint: "put it back from a backup of the folder"}
	default:
		return readOnly(d.path, err)
	}
	return d.afterRead(nil)
}

var errNodeDamaged = errors.New("damaged")

func readNodeFile(fsys vfs.FS, name string) (nodeFile, error) {
	var f nodeFile
	b, err := storage.ReadFile(fsys, name)
	if err != nil {
		return f, err
	}
	if json.Unmarshal(b, &f) != nil || f.Format <= nodeFormat && f.Check != f.check() {
		return f, errNodeDamaged
	}
	return f, nil
}

// afterRead says whether this node may use the folder.
func (d *dataDir) afterRead(err error) error {
	if err != nil {
		return err
	}
	switch {
	case d.node.Format > nodeFormat:
		return &StartError{Kind: StartNewer, Message: fmt.Sprintf("%s was written by a newer version of Mneme (format %d, this is %d)", d.path, d.node.Format, nodeFormat),
			Hint: "start the newer version"}
	case d.node.Recovering != nil && !d.recovers:
		return d.halfDone()
	case d.node.Mode == modeCluster && d.id == "":
		return usage(fmt.Sprintf("%s belongs to node %s of a cluster", d.path, d.node.NodeID), "start memnode with the options of the cluster, --node-id and those beside it; of work on the stopped node memctl backup and memctl cluster recover are possible, for the rest ask a node that runs; memctl backup and memctl restore into another directory make a node on its own")
	case d.node.Mode == modeCluster && d.id != d.node.NodeID:
		return usage(fmt.Sprintf("%s belongs to node %s and not to %s", d.path, d.node.NodeID, d.id), "give the --node-id that it was made with, or another --data-dir")
	case d.node.Mode == modeStandalone && d.id != "":
		return usage(fmt.Sprintf("%s belongs to a node on its own", d.path),
			fmt.Sprintf("memctl cluster init --data-dir %s --node-id %s --peer-certs DIR makes it the first node of a cluster; or choose an empty --data-dir", d.path, d.id))
	case d.node.Mode != modeStandalone && d.node.Mode != modeCluster || (d.node.Mode == modeCluster) != (d.node.Cluster != nil):
		return &StartError{Kind: StartNewer, Message: fmt.Sprintf("%s has the mode %q, which this version does not know", d.path, d.node.Mode), Hint: "start the newer version"}
	}
	d.fresh = !d.hasData()
	return nil
}

// halfDone says that a recovery or an init has begun and not ended.
func (d *dataDir) halfDone() error {
	if id := d.node.Recovering.NodeID; id != "" {
		return &StartError{Kind: StartDamaged, Message: fmt.Sprintf("an init of %s as node %s of a cluster was begun and not finished", d.path, id),
			Hint: "run the same memctl cluster init again"}
	}
	return &StartError{Kind: StartDamaged, Message: fmt.Sprintf("a recovery of %s was begun and not finished", d.path),
		Hint: "run the same memctl cluster recover again"}
}

// hasData reports whether a log, a state or keys were ever written.
func (d *dataDir) hasData() bool {
	if d.has(filepath.Join("nats", "jetstream")) || d.has("shards") {
		return true
	}
	// A master key alone is no data: the operator put it there, or the first start
	// was cut short before anything could be sealed.
	keyed, err := keyring.Exists(d.fs, d.keys())
	return keyed || err != nil
}

// has reports whether there is anything in a folder.
func (d *dataDir) has(sub string) bool {
	list := d.fs.List
	if sub != "shards" {
		list = vfs.Default.List // NATS has files of its own
	}
	names, err := list(filepath.Join(d.path, sub))
	return err == nil && len(names) > 0
}

// refuseWithoutLog keeps a node whose log is on an external NATS from opening, or
// beginning, one in the folder: it would be taken for a damaged one.
func (d *dataDir) refuseWithoutLog(url string) error {
	if d.node.LogURL == "" || url != "" {
		return nil
	}
	return usage(fmt.Sprintf("the log of %s is not in it but on an external NATS, %s", d.path, d.node.LogURL),
		fmt.Sprintf("start memnode --data-dir %s --nats-url %s with the NATS credentials; then memctl works without --data-dir", d.path, d.node.LogURL))
}

// rememberLog notes where the log is, so that work on the stopped node does not
// look for it in the folder.
func (d *dataDir) rememberLog(url string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if url = withoutCredentials(url); url == d.node.LogURL {
		return nil
	}
	d.node.LogURL = url
	return d.writeNode()
}

// withoutCredentials gives the addresses of a NATS without user, password or token.
func withoutCredentials(urls string) string {
	if urls == "" {
		return ""
	}
	list := strings.Split(urls, ",")
	for i, url := range list {
		scheme, rest, ok := strings.Cut(strings.TrimSpace(url), "://")
		if !ok {
			scheme, rest = "nats", scheme
		}
		list[i] = scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return strings.Join(list, ",")
}

// writeNode writes node.json and its copy.
func (d *dataDir) writeNode() error {
	if d.node.Format > nodeFormat {
		return nil // not ours to write
	}
	if len(d.node.Former) > 0 || d.node.Cluster != nil && len(d.node.Cluster.Origin) > 0 {
		d.node.Format = nodeFormat
	}
	d.node.Check = d.node.check()
	b, err := json.MarshalIndent(d.node, "", "  ")
	if err != nil {
		return err
	}
	for _, name := range []string{nodeJSON, nodeCopy} {
		if err := storage.ReplaceFile(d.fs, filepath.Join(d.path, name), append(b, '\n'), 0o600); err != nil {
			return readOnly(d.path, err)
		}
	}
	return nil
}

// shards is how many shards the folder has, and notes it in one to which nothing was
// written yet. asked is what the configuration says; 0 takes what there is.
func (d *dataDir) shards(asked int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.node.Cluster != nil {
		return max(d.node.Cluster.Shards, 1), nil // package cluster has compared them
	}
	if d.fresh && asked != 0 && asked != max(d.node.Shards, 1) {
		if d.node.Shards = asked; asked == 1 {
			d.node.Shards = 0
		}
		if err := d.writeNode(); err != nil {
			return 0, err
		}
	}
	has := max(d.node.Shards, 1)
	if asked != 0 && asked != has {
		return 0, usage(fmt.Sprintf("%s has %d shards, not %d", d.path, has, asked),
			"leave --shards out: the number is for ever; memctl export and import bring memories into a new --data-dir that has another")
	}
	return has, nil
}

// name is what Raft and NATS know the node by.
func (d *dataDir) name() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.node.Cluster != nil {
		return cluster.Name(d.node.NodeID, d.node.Cluster.Incarnation)
	}
	return d.node.NodeID
}

// former are the clusters that this one was made of.
func (d *dataDir) former() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.node.Cluster; c != nil {
		return slices.Concat(c.Origin, c.Former)
	}
	return slices.Clone(d.node.Former)
}

// grouped reports whether the folder is that of a node of a cluster. Others may join
// meanwhile.
func (d *dataDir) grouped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.node.Cluster != nil
}

func (d *dataDir) close() error { return d.lock.unlock() }

// newIncarnation tells the node of a directory from one of the same id that had
// another: the random end of an id, in small letters.
func newIncarnation(ids *events.IDSource) string {
	id := ids.New().String()
	return strings.ToLower(id[len(id)-8:])
}

func newNodeID(now func() time.Time) string { return events.NewIDSource(now, nil).New().String() }
