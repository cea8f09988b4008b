package eventlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// nats-server 2.15.2 trusts index.db when it opens a stream and then walks the
// blocks without looking at checksums. After one flipped bit in a length or a
// sequence it reads a sequence out of other bytes, marks everything up to it as
// deleted, one by one, and the process dies for want of memory. Without
// index.db it walks the same blocks with checksums, cuts a block at the first
// bad record and reports what it lost. So blocks are walked here first; of a
// stream with an impossible one the block is copied aside, because it is about
// to be cut, and index.db is removed.
//
// One field of a record is covered by no checksum: the length of the headers.
// With a wrong one the server hands out a message whose headers and body are
// cut at the wrong place. The headers end at their first blank line, so the
// right length is known; it is written back, after the block was copied aside.

// damagedBlock is a block of a stream that would lead the server astray.
type damagedBlock struct {
	Stream string
	Path   string
	Detail string
	Kept   string // where its copy is
	Mended bool   // nothing is lost: what was wrong was written again
	Erased bool   // what was damaged was set aside, see erased.go; the rest stays
}

// finding is what is wrong in a block. With a nil fix the server cuts the block
// there; else writing fix at the offset makes the record whole.
type finding struct {
	offset int64
	detail string
	fix    []byte
}

// preflight makes a store safe to open and says what it found.
func preflight(fs vfs.FS, dir string) ([]damagedBlock, error) {
	streams, err := streamFolders(fs, dir)
	if err != nil {
		return nil, err
	}
	var found []damagedBlock
	for _, stream := range streams {
		unborn, err := isUnborn(fs, stream)
		if err != nil {
			return nil, err
		}
		removed, err := isRemoved(fs, stream, streams)
		if err != nil {
			return nil, err
		}
		if unborn || removed {
			if err := errors.Join(fs.RemoveAll(stream), storage.SyncDir(fs, fs.PathDir(stream))); err != nil {
				return nil, fmt.Errorf("remove what is left of the stream %s: %w", stream, err)
			}
			continue
		}
		if err := finishSeal(fs, stream); err != nil {
			return nil, fmt.Errorf("write the checksum of %s: %w", fs.PathJoin(stream, metaFile), err)
		}
		some, err := preflightStream(fs, dir, stream)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// preflightStream makes the blocks of one stream safe to open.
func preflightStream(fs vfs.FS, dir, stream string) (found []damagedBlock, err error) {
	blocks, err := blockFiles(fs, stream)
	if err != nil {
		return nil, err
	}
	cut := false
	for _, block := range blocks {
		d, err := inspectBlock(fs, dir, fs.PathBase(stream), block)
		if err != nil {
			return nil, err
		}
		if d != nil {
			found, cut = append(found, *d), cut || !d.Mended
		}
	}
	if cut {
		if err := fs.Remove(indexFile(fs, stream)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	reads, err := readsBlocks(fs, stream, blocks)
	if err != nil || !reads {
		return found, err
	}
	for _, block := range blocks {
		d, err := eraseUnsound(fs, dir, fs.PathBase(stream), block)
		if err != nil {
			return nil, err
		}
		if d != nil {
			found = append(slices.DeleteFunc(found, func(f damagedBlock) bool { return f.Path == d.Path }), *d)
		}
	}
	return found, nil
}

const (
	metaFile = "meta.inf" // what the stream is
	metaSum  = "meta.sum" // the checksum of that
)

// isUnborn reports whether the making of a stream was cut short, as by a kill
// during the first start or a repair: the server makes an empty block, writes
// meta.inf, then meta.sum, and takes no message before. With one of the two missing
// or empty it would not start.
func isUnborn(fs vfs.FS, stream string) (bool, error) {
	blocks, err := blockFiles(fs, stream)
	if err != nil {
		return false, err
	}
	for _, block := range blocks {
		if info, err := fs.Stat(block); err != nil || info.Size() > 0 {
			return false, err
		}
	}
	for _, name := range []string{metaFile, metaSum} {
		info, err := fs.Stat(fs.PathJoin(stream, name))
		if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// finishSeal writes meta.sum of a stream whose sealing was cut short: the server
// writes meta.inf anew, then meta.sum, and does not load a stream between the two.
// That it was cut short is certain if meta.sum is the checksum of the same stream
// before it was sealed.
func finishSeal(fs vfs.FS, stream string) error {
	meta, err := storage.ReadFile(fs, fs.PathJoin(stream, metaFile))
	sum, serr := storage.ReadFile(fs, fs.PathJoin(stream, metaSum))
	if err = errors.Join(err, serr); errors.Is(err, os.ErrNotExist) {
		return nil // the server says so
	}
	if err != nil {
		return err
	}
	open := bytes.Replace(meta, []byte(`"sealed":true`), []byte(`"sealed":false`), 1)
	hash, err := blockHash(fs.PathBase(stream))
	if err != nil || bytes.Equal(open, meta) {
		return err
	}
	hexSum := func(b []byte) []byte {
		hash.Reset()
		_, _ = hash.Write(b)
		return hex.AppendEncode(nil, hash.Sum(nil))
	}
	if !bytes.Equal(sum, hexSum(open)) {
		return nil
	}
	return storage.ReplaceFile(fs, fs.PathJoin(stream, metaSum), hexSum(meta), 0o600)
}

// streamFolders are the folders of the streams of all accounts.
func streamFolders(fs vfs.FS, dir string) ([]string, error) {
	root := fs.PathJoin(dir, "jetstream")
	accounts, err := list(fs, root)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, account := range accounts {
		streams := fs.PathJoin(root, account, "streams")
		names, err := list(fs, streams)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			folders = append(folders, fs.PathJoin(streams, name))
		}
	}
	return folders, nil
}

// list gives the sorted names in a folder; one that is not there has none.
func list(fs vfs.FS, dir string) ([]string, error) {
	if info, err := fs.Stat(dir); errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	}
	names, err := fs.List(dir)
	slices.Sort(names)
	return names, err
}

func logDamaged(log *slog.Logger, damaged []damagedBlock) {
	for _, d := range damaged {
		level, what := slog.LevelError, "a block of the log is damaged; the server will drop the rest of it"
		switch {
		case d.Mended:
			level, what = slog.LevelWarn, "a block of the log was damaged and has been mended; nothing is lost"
		case d.Erased:
			what = "a block of the log is damaged; what does not check was set aside as erased, the rest stays"
		}
		log.Log(context.Background(), level, what, "stream", d.Stream, "block", d.Path, "detail", d.Detail, "copy", d.Kept)
	}
}

// inspectBlock walks a block, copies it aside if something is wrong with it,
// and mends what can be mended. It returns nil for a sound block.
func inspectBlock(fs vfs.FS, dir, stream, block string) (*damagedBlock, error) {
	f, err := fs.Open(block)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", block, err)
	}
	found, err := walkBlock(bufio.NewReaderSize(f, 256<<10))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("inspect %s: %w", block, err)
	}
	return keepAndMend(fs, dir, stream, block, found)
}

// keepAndMend copies a block aside and mends what can be mended of the findings. It
// returns nil if there are none.
func keepAndMend(fs vfs.FS, dir, stream, block string, found []finding) (*damagedBlock, error) {
	if len(found) == 0 {
		return nil, nil
	}
	d := &damagedBlock{Stream: stream, Path: block, Mended: true}
	var err error
	if d.Kept, err = keepCopy(fs, dir, stream, block); err != nil {
		return nil, fmt.Errorf("keep a copy of %s: %w", block, err)
	}
	var details []string
	for _, one := range found {
		details = append(details, one.detail)
		d.Mended = d.Mended && one.fix != nil
	}
	d.Detail = strings.Join(details, "; ")
	if err := mendBlock(fs, block, found); err != nil {
		return nil, fmt.Errorf("mend %s: %w", block, err)
	}
	return d, nil
}

// mendBlock writes the fixes of the findings in place. A crash in between is harmless:
// what is not written yet, or in part, is found again at the next start.
func mendBlock(fs vfs.FS, block string, found []finding) error {
	f, err := fs.OpenReadWrite(block, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	for _, one := range found {
		if one.fix != nil {
			_, werr := f.WriteAt(one.fix, one.offset)
			err = errors.Join(err, werr)
		}
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// walkBlock follows the records of a block and returns what cannot be right: a
// wrong length of headers, which can be mended, wherever it is, and the first
// record behind which nothing can be found. A record that ends beyond the file
// is left to the server, which cuts it: a crash leaves such ones.
func walkBlock(r *bufio.Reader) ([]finding, error) {
	var b [headLength]byte
	var last uint64
	var found []finding
	for at := int64(0); ; {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return found, unlessEnd(err)
		}
		head := readHead(b[:])
		if !head.possible() {
			return append(found, finding{offset: at, detail: fmt.Sprintf("record at %d has length %d", at, head.length)}), nil
		}
		if detail := wrongSequence(head.seq, &last); detail != "" {
			return append(found, finding{offset: at, detail: fmt.Sprintf("record at %d has %s", at, detail)}), nil
		}
		rest := head.length - headLength
		if head.headers {
			if _, err := r.Discard(head.subject); err != nil {
				return found, unlessEnd(err)
			}
			rest -= head.subject
			one, err := checkHeaders(r, at+int64(headLength+head.subject), head.length-head.least())
			if err != nil {
				return found, err
			}
			found = append(found, one...)
		}
		if _, err := r.Discard(rest); err != nil {
			return found, unlessEnd(err)
		}
		at += int64(head.length)
	}
}

// unlessEnd takes the end of a file for the end of the walk.
func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// wrongSequence describes a sequence that would make the server mark far too
// many as deleted. last is the highest one before it.
func wrongSequence(seq uint64, last *uint64) string {
	if seq&seqTombstone != 0 {
		return ""
	}
	seq &^= seqErased
	if *last != 0 && seq > *last && seq-*last > plausibleHole {
		return fmt.Sprintf("sequence %d behind %d", seq, *last)
	}
	if *last == 0 && seq > 1<<48 {
		return fmt.Sprintf("sequence %d", seq)
	}
	*last = max(*last, seq)
	return ""
}

const (
	headersBegin  = "NATS/1.0\r\n"
	headersEnd    = "\r\n\r\n"
	headersWithin = 4 << 10 // the log's messages have one short header
)

// checkHeaders compares the length of a record's headers, which comes next in r
// and stands at offset, with where the headers end. Headers that do not look
// like any are left to the server: its checksum covers them.
func checkHeaders(r *bufio.Reader, offset int64, room int) ([]finding, error) {
	b, err := r.Peek(4 + min(room, headersWithin))
	if err := unlessEnd(err); err != nil {
		return nil, err
	}
	if len(b) < 4 || !bytes.HasPrefix(b[4:], []byte(headersBegin)) {
		return nil, nil
	}
	end := bytes.Index(b[4:], []byte(headersEnd))
	if end < 0 {
		return nil, nil
	}
	have, want := binary.LittleEndian.Uint32(b), uint32(end+len(headersEnd))
	if have == want {
		return nil, nil
	}
	return []finding{{offset: offset, detail: fmt.Sprintf("headers at %d have %d bytes instead of %d", offset, have, want),
		fix: binary.LittleEndian.AppendUint32(nil, want)}}, nil
}

// keepCopy copies a block to <dir>/damaged/<stream>-<block>, numbered if that
// is there already, durably: the server is about to cut the original.
func keepCopy(fs vfs.FS, dir, stream, block string) (string, error) {
	damaged := fs.PathJoin(dir, "damaged")
	if err := fs.MkdirAll(damaged, 0o700); err != nil {
		return "", err
	}
	base := fs.PathJoin(damaged, stream+"-"+fs.PathBase(block))
	path := base
	for n := 1; ; n++ {
		if _, err := fs.Stat(path); errors.Is(err, os.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
		path = fmt.Sprintf("%s.%d", base, n)
	}
	in, err := fs.Open(block)
	if err != nil {
		return "", err
	}
	defer in.Close()
	err = storage.ReplaceWith(fs, path, 0o600, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
	return path, errors.Join(err, storage.SyncDir(fs, dir))
}
