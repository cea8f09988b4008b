package eventlog

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// raftFolder is where a server of several keeps what it agreed on with the others: a folder
// for each group, that of the streams and one for each stream, named by the group.
const raftFolder = "jetstream/" + systemAccount + "/_js_"

// A snapshot of a group is snapshots/snap.<term>.<index>, of which the newest counts:
//
//	 0      8       16            20
//	+------+-------+-------------+-------+------+---------+
//	| term | index | length, u32 | peers | data | hash 8  |
//	+------+-------+-------------+-------+------+---------+
const raftSnapshotMinimum = 20 + recordHash

// CopyDamage says what is wrong with the copy of the log that a stopped server of several
// has, or with the files by which it agrees with the others on what the log holds; nil if
// nothing is. A server would keep a hole in its copy for ever, without a word, and show it
// to all once it leads; end its copy for ever at a snapshot that is damaged; and forget what
// it acknowledged from a damaged entry on. What a crash leaves is none: the end of the last
// block that nothing sound follows.
//
// Not seen: term, vote and peers (tav.idx, peers.idx), which have no checksum.
func CopyDamage(fs vfs.FS, dir string) (damage, err error) {
	folders, err := streamFolders(fs, dir)
	if err != nil {
		return nil, err
	}
	groups, err := list(fs, fs.PathJoin(dir, raftFolder))
	if err != nil {
		return nil, err
	}
	for _, name := range groups {
		group := fs.PathJoin(dir, raftFolder, name)
		if damage, err := raftSnapshotDamage(fs, group); damage != nil || err != nil {
			return damage, err
		}
		folders = append(folders, group)
	}
	for _, folder := range folders {
		blocks, err := blockFiles(fs, folder)
		if err != nil {
			return nil, err
		}
		for i, block := range blocks {
			r, err := readRecords(fs, fs.PathBase(folder), block)
			if err != nil {
				return nil, err
			}
			if at := r.sound(); at < len(r.b) && (i < len(blocks)-1 || len(r.unsound()) > 0) {
				return fmt.Errorf("%s does not check at %d", block, at), nil
			}
		}
	}
	return nil, nil
}

// raftSnapshotDamage looks at the newest snapshot of a group.
func raftSnapshotDamage(fs vfs.FS, group string) (damage, err error) {
	names, err := list(fs, fs.PathJoin(group, "snapshots"))
	if err != nil {
		return nil, err
	}
	newest, newestTerm, newestIndex := "", uint64(0), uint64(0)
	for _, name := range names {
		var term, index uint64
		if n, err := fmt.Sscanf(name, "snap.%d.%d", &term, &index); n != 2 || err != nil || name != fmt.Sprintf("snap.%d.%d", term, index) {
			continue
		}
		if newest == "" || term > newestTerm || term == newestTerm && index > newestIndex {
			newest, newestTerm, newestIndex = name, term, index
		}
	}
	if newest == "" {
		return nil, nil
	}
	path := fs.PathJoin(group, "snapshots", newest)
	b, err := storage.ReadFile(fs, path)
	if err != nil {
		return nil, err
	}
	sum, err := blockHash(fs.PathBase(group))
	if err != nil {
		return nil, err
	}
	if len(b) < raftSnapshotMinimum {
		return fmt.Errorf("%s has %d bytes", path, len(b)), nil
	}
	body, own := b[:len(b)-recordHash], b[len(b)-recordHash:]
	_, _ = sum.Write(body) // a hash takes everything
	if !bytes.Equal(sum.Sum(nil), own) {
		return fmt.Errorf("the checksum of %s is wrong", path), nil
	}
	return nil, nil
}
