package eventlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
)

// The server begins the removal of a stream with meta.inf, and does not load what a
// kill leaves of it. A stream is removed when another one has taken its place, or
// when it is the copy of a repair that was given up. But meta.inf may also be lost,
// and then a stream must not be removed whose messages are nowhere else. What tells
// is whether the later stream has begun: it then holds a frame of its own epoch,
// which is written when the whole log is in it.

// isRemoved reports whether the removal of a stream was cut short. Of a stream that
// was whole, or of which that is not certain, it was not.
func isRemoved(fs vfs.FS, stream string, all []string) (bool, error) {
	if there(fs, stream, metaFile) || !there(fs, stream, metaSum) {
		return false, nil
	}
	shard, epoch, ok := events.ParseStreamName(fs.PathBase(stream))
	if !ok {
		return false, nil
	}
	for _, other := range all {
		s, e, ok := events.ParseStreamName(fs.PathBase(other))
		if !ok || s != shard || e == epoch || fs.PathDir(other) != fs.PathDir(stream) || !there(fs, other, metaFile) || !there(fs, other, metaSum) {
			continue
		}
		later, laterEpoch := other, e
		if e < epoch {
			later, laterEpoch = stream, epoch
		}
		began, certain, err := hasBegun(fs, later, laterEpoch)
		if err != nil {
			return false, fmt.Errorf("look for the epoch of %s: %w", later, err)
		}
		// An earlier stream gives way to one that has begun, a copy of it that has
		// not begun to an earlier stream.
		if began && e > epoch || !began && certain && e < epoch {
			return true, nil
		}
	}
	return false, nil
}

func there(fs vfs.FS, stream, file string) bool {
	_, err := fs.Stat(fs.PathJoin(stream, file))
	return err == nil
}

// hasBegun reports whether a stream holds a frame of its epoch. That it does not is
// certain only if all that it holds are frames.
func hasBegun(fs vfs.FS, stream string, epoch uint32) (began, certain bool, err error) {
	blocks, err := blockFiles(fs, stream)
	if err != nil {
		return false, false, err
	}
	certain = true
	for _, block := range blocks {
		f, err := fs.Open(block)
		if err != nil {
			return false, false, err
		}
		whole, err := eachRecord(bufio.NewReaderSize(f, 256<<10), func(message []byte) {
			frame, err := events.DecodeFrame(message)
			began = began || err == nil && frame.Epoch == epoch
			certain = certain && err == nil
		})
		if err = errors.Join(err, f.Close()); err != nil || began {
			return began, true, err
		}
		certain = certain && whole
	}
	return false, certain, nil
}

// eachRecord calls fn with the message of each record of a block, which is fn's until
// it returns. It ends at the first record that is no whole one of a message.
func eachRecord(r *bufio.Reader, fn func(message []byte)) (whole bool, err error) {
	var b [headLength]byte
	var rest []byte
	for {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return errors.Is(err, io.EOF), unlessEnd(err)
		}
		head := readHead(b[:])
		if !head.possible() || head.seq&(seqErased|seqTombstone) != 0 {
			return false, nil
		}
		rest = append(rest[:0], make([]byte, head.length-headLength)...)
		if _, err := io.ReadFull(r, rest); err != nil {
			return false, unlessEnd(err)
		}
		message := rest[head.subject : len(rest)-recordHash]
		if head.headers {
			length := binary.LittleEndian.Uint32(message)
			if message = message[4:]; uint32(len(message)) < length {
				return false, nil
			}
			message = message[length:]
		}
		fn(message)
	}
}
