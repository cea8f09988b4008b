package memory

import "time"

// DestroyedKeys are the ids of all keys of a cluster that were destroyed, and of the
// namespaces whose keys were. They are no secrets: they stand in the log in clear. A restore
// destroys them again, so that what was forgotten stays forgotten.
type DestroyedKeys struct {
	ClusterID string `json:"cluster_id"`
	// Former are the clusters that this one was made of, by memctl cluster init or recover, or by
	// a restore.
	Former     []string `json:"former,omitempty"`
	Keys       []string `json:"keys"`       // 32 hexadecimal digits each, ascending
	Namespaces []string `json:"namespaces"` // ids, ascending
}

// BackupMade is what a run of memctl backup into a place gave.
type BackupMade struct {
	ID       string    `json:"id"`
	Parent   string    `json:"parent,omitempty"` // the backup that it goes on from; "" of a full one
	Cluster  string    `json:"cluster_id"`
	MadeAt   time.Time `json:"made_at"`
	Position string    `json:"position"`
	Frames   uint64    `json:"frames"`
	Events   uint64    `json:"events"`
	Bytes    int64     `json:"bytes"` // of the range of the log
	// Destroyed is how many keys and namespaces a restore destroys again.
	Destroyed int `json:"destroyed"`
	// Unknown is how many of them the node does not know of: it came back from an older copy of
	// itself, and what they open may live there.
	Unknown int `json:"destroyed_unknown,omitempty"`
	// Begun says why a full backup was made where one that goes on was asked for.
	Begun string `json:"begun_anew,omitempty"`
	// Removed are files that no backup needs any more: older keys, and what killed runs left.
	Removed []string `json:"removed,omitempty"`
	// KeysKept are older keys that stay though something was destroyed since: the newest do not
	// hold all that lives in them.
	KeysKept []string `json:"keys_kept,omitempty"`
	TookMS   int64    `json:"took_ms"`
}

// BackupEntry is one backup of a place.
type BackupEntry struct {
	ID       string    `json:"id"`
	Parent   string    `json:"parent,omitempty"`
	Cluster  string    `json:"cluster_id"`
	Era      int       `json:"era,omitempty"` // of Eras in the list, from 1; 0 of a foreign cluster
	MadeAt   time.Time `json:"made_at"`
	Position string    `json:"position"`
	Events   uint64    `json:"events"`
	Bytes    int64     `json:"bytes"`
	// Problem says why it cannot be restored, as far as that is seen without reading it; mostly "".
	Problem string `json:"problem,omitempty"`
}

// BackupList is the answer of memctl backup list, oldest first.
type BackupList struct {
	Place   string        `json:"place"`
	Backups []BackupEntry `json:"backups"`
	Eras    []BackupEra   `json:"eras"` // oldest first; the last one is the present
}

// BackupEra is what a place of backups holds of one cluster. A cluster that was made of the
// data of another one begins an era of its own there.
type BackupEra struct {
	Cluster string    `json:"cluster_id"`
	Backups int       `json:"backups"`
	Newest  string    `json:"newest"`
	MadeAt  time.Time `json:"made_at"` // of the newest
}

// Kinds of problems that a verification of backups finds.
const (
	BackupUnreadable = "unreadable"   // a manifest that is cut or was changed
	BackupForged     = "forged"       // a manifest was not written by who had the keys
	BackupMissing    = "missing"      // a file, or a backup that another one goes on from
	BackupTruncated  = "truncated"    // a file is shorter than it was
	BackupChanged    = "changed"      // a file is not what it was
	BackupMixed      = "mixed"        // a file is that of another backup
	BackupForeign    = "foreign"      // it is of another cluster
	BackupBroken     = "broken_chain" // it does not go on where the one before ends
)

// BackupProblem is one thing that is wrong in a place of backups.
type BackupProblem struct {
	Backup string `json:"backup"`
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
	// Also are the backups that cannot be restored for it, because they go on from this one.
	Also []string `json:"also,omitempty"`
}

// BackupVerifyReport is the answer of memctl backup verify.
type BackupVerifyReport struct {
	OK       bool        `json:"ok"`
	Place    string      `json:"place"`
	Cluster  string      `json:"cluster_id,omitempty"`
	Backups  int         `json:"backups"`
	Eras     []BackupEra `json:"eras"`
	Newest   string      `json:"newest,omitempty"`
	MadeAt   *time.Time  `json:"made_at,omitempty"` // of the newest
	Position string      `json:"position,omitempty"`
	// NewestOK says that nothing stands in the way of restoring the newest, whatever older ones
	// have. NewestIntact is the newest that checks; "" if there is none.
	NewestOK     bool            `json:"newest_ok"`
	NewestIntact string          `json:"newest_intact,omitempty"`
	NewestOnly   bool            `json:"newest_only,omitempty"` // of the ranges only those of the newest were read
	Bytes        int64           `json:"bytes"`                 // read
	Problems     []BackupProblem `json:"problems"`
	// Leftovers are files that no manifest names; they are no backups.
	Leftovers []string `json:"leftovers,omitempty"`
	TookMS    int64    `json:"took_ms"`
}

// BackupDrillShard is one shard of a drill.
type BackupDrillShard struct {
	ID        int    `json:"id"`
	Position  string `json:"position"`
	StateHash string `json:"state_hash"`
	Want      string `json:"state_hash_backed_up,omitempty"` // "" where it cannot be compared
	Same      bool   `json:"same"`                           // as the one that was backed up
	Events    uint64 `json:"events"`
	LogOK     bool   `json:"log_ok"` // log and state agree
}

// BackupDrillReport is the answer of memctl backup drill.
type BackupDrillReport struct {
	OK     bool   `json:"ok"`
	Backup string `json:"backup"`
	BackupErasOf
	MadeAt time.Time          `json:"made_at"`
	Shards []BackupDrillShard `json:"shards"`
	// NotCompared says why the state hashes were not compared; "" where they were.
	NotCompared string `json:"not_compared,omitempty"`
	// Destroyed is how many keys and namespaces were destroyed before the log was opened, and
	// DestroyedLiving how many of them lived in the keys.
	Destroyed       int `json:"destroyed,omitempty"`
	DestroyedLiving int `json:"destroyed_living,omitempty"`

	Records uint64 `json:"records"`
	TookMS  int64  `json:"took_ms"`
}

// BackupErasOf says from which era of its place a backup is, where the place holds several.
type BackupErasOf struct {
	Era  int         `json:"era,omitempty"` // of Eras, from 1
	Eras []BackupEra `json:"eras,omitempty"`
}

// BackupPruneReport is the answer of memctl backup prune.
type BackupPruneReport struct {
	Kept    []string `json:"kept"`
	Checked string   `json:"checked"` // of them the newest that was read and checks
	Pruned  []string `json:"pruned"`  // backups
	// Removed are files: those of the backups, with their manifests, and others that no backup
	// needs, of both places.
	Removed []string `json:"removed"`
	Files   int      `json:"files"` // how many those are
	Keys    int      `json:"keys"`  // how many of them are backups of the keys
	Bytes   int64    `json:"bytes"` // of all of them
	// KeysKept are older keys that stay: the newest do not hold all that lives in them.
	KeysKept []string `json:"keys_kept,omitempty"`
	DryRun   bool     `json:"dry_run,omitempty"`
}

// RestoreReport is the result of a restore.
type RestoreReport struct {
	RebuildReport
	Backup string `json:"backup,omitempty"` // of a place
	BackupErasOf
	// Destroyed is how many keys and namespaces were destroyed again before the log was opened.
	Destroyed int `json:"destroyed,omitempty"`
	// DestroyedLiving is how many of them lived in the keys that were given.
	DestroyedLiving int `json:"destroyed_living,omitempty"`
}
