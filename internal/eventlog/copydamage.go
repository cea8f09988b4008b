package eventlog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"syscall"

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
// block that nothing sound follows. Of a server that runs CopyCheck finds the same.
//
// Not seen: term, vote and peers (tav.idx, peers.idx), which have no checksum.
func CopyDamage(fs vfs.FS, dir string) (damage, err error) {
	parts, err := copyParts(fs, dir)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if fault, _, err := p.look(fs); err != nil {
			return nil, err
		} else if fault != nil {
			return fault, nil
		}
	}
	return nil, nil
}

// copyPart is what is looked at as one in a copy: a block of a stream or of a group's log,
// or, without a block, a group's newest snapshot.
type copyPart struct{ folder, block string }

// copyParts are all parts of a copy.
func copyParts(fs vfs.FS, dir string) (parts []copyPart, err error) {
	groups, err := list(fs, fs.PathJoin(dir, raftFolder))
	if err != nil {
		return nil, err
	}
	folders, err := streamFolders(fs, dir)
	if err != nil {
		return nil, err
	}
	for _, name := range groups {
		group := fs.PathJoin(dir, raftFolder, name)
		parts, folders = append(parts, copyPart{folder: group}), append(folders, group)
	}
	for _, folder := range folders {
		blocks, err := blockFiles(fs, folder)
		if err != nil {
			return nil, err
		}
		for _, block := range blocks {
			parts = append(parts, copyPart{folder, block})
		}
	}
	return parts, nil
}

// copyFault is what is wrong with a part. Two of the same part are equal if nothing has
// changed what does not check.
type copyFault struct {
	detail string
	bytes  [sha256.Size]byte // of what does not check
}

func (f *copyFault) Error() string { return f.detail }

// look reads a part and says what is wrong with it, nil if nothing is. One that is not there
// has nothing, and one that the disk cannot read is damaged.
func (p copyPart) look(fs vfs.FS) (fault *copyFault, read int64, err error) {
	if p.block == "" {
		fault, read, err = snapshotFault(fs, p.folder)
	} else {
		fault, read, err = blockFault(fs, p.folder, p.block)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, read, nil
	case errors.Is(err, syscall.EIO):
		return &copyFault{detail: "the disk cannot read it: " + err.Error()}, read, nil
	}
	return fault, read, err
}

func blockFault(fs vfs.FS, folder, block string) (*copyFault, int64, error) {
	r, err := readRecords(fs, fs.PathBase(folder), block)
	if err != nil {
		return nil, 0, err
	}
	read, at := int64(len(r.b)), r.sound()
	if at == len(r.b) {
		return nil, read, nil
	}
	end := len(r.b)
	if behind := r.unsound(); len(behind) > 0 {
		end = at + len(behind[0].fix)
	} else if blocks, err := blockFiles(fs, folder); err != nil || len(blocks) == 0 || blocks[len(blocks)-1] == block {
		return nil, read, err
	}
	return &copyFault{detail: fmt.Sprintf("%s does not check at %d", block, at), bytes: sha256.Sum256(r.b[at:end])}, read, nil
}

// snapshotFault looks at the newest snapshot of a group.
func snapshotFault(fs vfs.FS, group string) (*copyFault, int64, error) {
	names, err := list(fs, fs.PathJoin(group, "snapshots"))
	if err != nil {
		return nil, 0, err
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
		return nil, 0, nil
	}
	path := fs.PathJoin(group, "snapshots", newest)
	b, err := storage.ReadFile(fs, path)
	if err != nil {
		return nil, 0, err
	}
	sum, err := blockHash(fs.PathBase(group))
	if err != nil {
		return nil, 0, err
	}
	read := int64(len(b))
	if len(b) < raftSnapshotMinimum {
		return &copyFault{fmt.Sprintf("%s has %d bytes", path, len(b)), sha256.Sum256(b)}, read, nil
	}
	body, own := b[:len(b)-recordHash], b[len(b)-recordHash:]
	_, _ = sum.Write(body) // a hash takes everything
	if !bytes.Equal(sum.Sum(nil), own) {
		return &copyFault{fmt.Sprintf("the checksum of %s is wrong", path), sha256.Sum256(b)}, read, nil
	}
	return nil, read, nil
}
