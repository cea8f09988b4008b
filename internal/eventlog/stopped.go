package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// Stopped is the copy of a stream that a server has on its disk, read while no server
// runs: the messages from the first one on, up to the first that is missing or does not
// check. A copy of several holds what its server knew to be agreed on, and may lack what
// the others acknowledged last. It changes nothing. It is for one goroutine at a time.
type Stopped struct {
	identity string
	fs       vfs.FS
	at       []place // of sequence i+1
	bytes    uint64
	block    string // whose bytes are held
	held     []byte
}

// place is where a message lies in a block.
type place struct {
	block    string
	from, to int
}

var _ Stream = (*Stopped)(nil)

// OpenStopped reads what the folder of a server that does not run holds of a stream.
// Errors: ErrNotFound where there is no such stream, or another one has its name.
func OpenStopped(fsys vfs.FS, dir string, shard uint16, ref events.StreamRef) (*Stopped, error) {
	folders, err := streamFolders(fsys, dir)
	if err != nil {
		return nil, err
	}
	name := events.StreamName(shard, ref.Epoch)
	for _, folder := range folders {
		if fsys.PathBase(folder) != name {
			continue
		}
		var meta struct {
			Config struct {
				Metadata map[string]string `json:"metadata"`
			} `json:"config"`
			Metadata map[string]string `json:"metadata"`
		}
		b, err := storage.ReadFile(fsys, fsys.PathJoin(folder, metaFile))
		if err == nil {
			err = json.Unmarshal(b, &meta)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read %s: %w", fsys.PathJoin(folder, metaFile), err)
		}
		identity := meta.Metadata[metaIdentity] + meta.Config.Metadata[metaIdentity]
		if identity != ref.Identity {
			continue
		}
		s := &Stopped{identity: identity, fs: fsys}
		return s, s.scan(folder, name)
	}
	return nil, fmt.Errorf("%s in %s: %w", name, dir, ErrNotFound)
}

// scan finds the messages, in their order, each with its checksum right.
func (s *Stopped) scan(folder, name string) error {
	blocks, err := blockFiles(s.fs, folder)
	if err != nil {
		return err
	}
	for _, block := range blocks {
		b, err := storage.ReadFile(s.fs, block)
		if err != nil {
			return err
		}
		number, _, _ := strings.Cut(s.fs.PathBase(block), ".")
		sum, err := blockHash(name + "-" + number)
		if err != nil {
			return err
		}
		r := &records{b: b, sum: sum}
		for at := 0; at < len(b); {
			length, seq, ok := r.at(at)
			if !ok || seq&seqErased != 0 {
				return nil
			}
			from, to := bodyOf(b[at : at+length])
			at += length
			if seq&seqTombstone != 0 || seq <= uint64(len(s.at)) {
				continue
			}
			if seq != uint64(len(s.at))+1 {
				return nil
			}
			s.at = append(s.at, place{block, at - length + from, at - length + to})
			s.bytes += uint64(length)
		}
	}
	return nil
}

// bodyOf is where the message lies in a record.
func bodyOf(record []byte) (from, to int) {
	head := readHead(record)
	from, to = headLength+head.subject, len(record)-recordHash
	if head.headers {
		from += 4 + int(binary.LittleEndian.Uint32(record[from:]))
	}
	return min(from, to), to
}

// Info implements Stream.
func (s *Stopped) Info(context.Context) (Info, error) {
	n := uint64(len(s.at))
	return Info{First: 1, Last: n, Messages: n, Bytes: s.bytes, Identity: s.identity}, nil
}

// Append implements Stream: it takes nothing.
func (s *Stopped) Append(context.Context, []byte, uint64) error {
	return fmt.Errorf("append to a log that is stopped: %w", ErrClosed)
}

// Read implements Stream.
func (s *Stopped) Read(ctx context.Context, from, to uint64, fn func(Message) error) error {
	if to == 0 {
		to = uint64(len(s.at))
	}
	for seq := max(from, 1); seq <= to; seq++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := s.Get(ctx, seq)
		if errors.Is(err, ErrNotFound) {
			return &GapError{Want: seq}
		}
		if err == nil {
			err = fn(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Get implements Stream.
func (s *Stopped) Get(_ context.Context, seq uint64) (Message, error) {
	if seq == 0 || seq > uint64(len(s.at)) {
		return Message{}, fmt.Errorf("get %d: %w", seq, ErrNotFound)
	}
	p := s.at[seq-1]
	if p.block != s.block {
		b, err := storage.ReadFile(s.fs, p.block)
		if err != nil {
			return Message{}, err
		}
		s.block, s.held = p.block, b
	}
	return Message{Seq: seq, Data: bytes.Clone(s.held[p.from:p.to])}, nil
}

// Close implements Stream.
func (s *Stopped) Close() error { return nil }
