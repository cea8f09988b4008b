package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"mneme/internal/events"
)

// A backup of the log is a file of messages of all shards, verbatim: a section for
// each shard, that of the directory, shard 0, last. So it holds the entry of each namespace
// whose home it holds. A section goes on from a mark of its shard and is:
//
//	"MNEMELOG" ‖ u8 version ‖ u16 shard ‖ u16 shards ‖ 16 cluster id
//	‖ u64 sequence ‖ u32 epoch ‖ u64 term ‖ chain 32                     the mark
//	then, for each message: u64 sequence ‖ u32 length ‖ bytes
//	at the end: u64 0 ‖ u64 messages ‖ u32 epoch ‖ u64 term ‖ chain 32 ‖ SHA-256 of all before
//
// All integers are big-endian. In version 2 a section has no mark, and neither epoch nor
// term at its end: it goes on from the beginning. It holds no plaintext; with the
// keyring it is the whole memory.
const (
	logMagic       = "MNEMELOG"
	logVersion     = 3
	logVersionFrom = 2 // the oldest that is read
	headerSize     = len(logMagic) + 1 + 2 + 2 + 16
	markSize       = 8 + 4 + 8 + 32
	maxMessage     = 16 << 20
)

// MaxShards bounds the shards of a node.
const MaxShards = 64

// ErrNotIntact is wrapped where a file is no backup, is cut, or was changed.
var ErrNotIntact = errors.New("not an intact backup")

// IsLog reports whether a file that begins with head is a backup of a log, as far as
// that tells. HeadSize bytes are enough.
func IsLog(head []byte) bool {
	return len(head) >= len(logMagic) && string(head[:len(logMagic)]) == logMagic
}

// HeadSize is how many bytes IsLog looks at.
const HeadSize = len(logMagic)

// Section is one shard's part of a file.
type Section struct {
	Shards     uint16
	Cluster    events.ID
	After, End Mark
	Frames     uint64
}

// SectionWriter writes the section of one shard.
type SectionWriter struct {
	buf    *bufio.Writer
	out    io.Writer // counted, hashed, buffered
	sum    hash.Hash
	end    Mark
	frames uint64
	bytes  int64
}

// BeginSection writes the head of a section.
func BeginSection(w io.Writer, cluster events.ID, shards uint16, after Mark) (*SectionWriter, error) {
	s := &SectionWriter{buf: bufio.NewWriterSize(w, 1<<20), sum: sha256.New(), end: after}
	s.out = io.MultiWriter(s.buf, s.sum)
	b := append([]byte(logMagic), logVersion)
	b = binary.BigEndian.AppendUint16(b, after.Shard)
	b = binary.BigEndian.AppendUint16(b, shards)
	return s, s.write(appendMark(append(b, cluster[:]...), after, true))
}

func appendMark(b []byte, m Mark, seq bool) []byte {
	if seq {
		b = binary.BigEndian.AppendUint64(b, m.Seq)
	}
	b = binary.BigEndian.AppendUint32(b, m.Epoch)
	b = binary.BigEndian.AppendUint64(b, m.Term)
	return append(b, m.Chain[:]...)
}

func (s *SectionWriter) write(b []byte) error {
	n, err := s.out.Write(b)
	s.bytes += int64(n)
	return err
}

// Message writes the log's next message.
func (s *SectionWriter) Message(seq uint64, data []byte) error {
	if seq != s.end.Seq+1 {
		return fmt.Errorf("message %d does not follow %d: %w", seq, s.end.Seq, ErrNotIntact)
	}
	s.end.Seq, s.end.Chain = seq, events.NextChain(s.end.Chain, seq, data)
	s.frames++
	b := binary.BigEndian.AppendUint64(nil, seq)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	return s.write(append(b, data...))
}

// Close ends the section in the epoch and term that hold there. It returns how many
// bytes were written.
func (s *SectionWriter) Close(epoch uint32, term uint64) (bytes int64, err error) {
	s.end.Epoch, s.end.Term = epoch, term
	b := binary.BigEndian.AppendUint64(nil, 0)
	b = binary.BigEndian.AppendUint64(b, s.frames)
	if err := s.write(appendMark(b, s.end, false)); err != nil {
		return s.bytes, err
	}
	n, err := s.buf.Write(s.sum.Sum(nil))
	s.bytes += int64(n)
	return s.bytes, errors.Join(err, s.buf.Flush())
}

// ReadLog checks a file while it hands out its messages. It returns what its sections
// are, by shard. Errors: those of message, ErrNotIntact, events.ErrNewer, events.ErrOlder.
func ReadLog(r io.Reader, message func(shard uint16, seq uint64, data []byte) error) ([]Section, error) {
	br := bufio.NewReaderSize(r, 1<<20)
	var found []Section
	for {
		in := &sectionReader{br: br, sum: sha256.New()}
		s, err := in.header()
		if err == nil {
			err = follows(s, found)
		}
		if err == nil {
			err = in.messages(&s, func(seq uint64, data []byte) error { return message(s.After.Shard, seq, data) })
		}
		if err != nil {
			return found, err
		}
		if found = append([]Section{s}, found...); s.After.Shard > 0 {
			continue
		}
		if _, err := br.ReadByte(); err == nil {
			return found, fmt.Errorf("more behind its end: %w", ErrNotIntact)
		} else if err != io.EOF {
			return found, err
		}
		return found, nil
	}
}

// follows checks that a section comes behind those that were read before it.
func follows(s Section, found []Section) error {
	shard := s.After.Shard
	if len(found) == 0 {
		if shard+1 != s.Shards {
			return fmt.Errorf("it begins with shard %d of %d: %w", shard, s.Shards, ErrNotIntact)
		}
		return nil
	}
	if last := found[0]; shard+1 != last.After.Shard || s.Shards != last.Shards || s.Cluster != last.Cluster {
		return fmt.Errorf("the section of shard %d does not follow that of shard %d: %w", shard, last.After.Shard, ErrNotIntact)
	}
	return nil
}

// sectionReader reads one section.
type sectionReader struct {
	br      io.Reader
	sum     hash.Hash
	version byte
}

// read fills b. What ends before is not intact; another error of the reader stays one.
func (r *sectionReader) read(b []byte) error {
	_, err := io.ReadFull(r.br, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrNotIntact
	}
	if err != nil {
		return err
	}
	_, err = r.sum.Write(b)
	return err
}

func (r *sectionReader) header() (s Section, err error) {
	head := make([]byte, headerSize)
	if err := r.read(head); err != nil || !IsLog(head) {
		return s, fmt.Errorf("header: %w", errors.Join(err, ErrNotIntact))
	}
	r.version = head[len(logMagic)]
	if r.version > logVersion {
		return s, fmt.Errorf("backup version %d: %w", r.version, events.ErrNewer)
	} else if r.version < logVersionFrom {
		return s, fmt.Errorf("backup version %d: %w", r.version, events.ErrOlder)
	}
	rest := head[len(logMagic)+1:]
	s.After.Shard, s.Shards = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	copy(s.Cluster[:], rest[4:])
	if s.Shards == 0 || s.Shards > MaxShards {
		return s, fmt.Errorf("%d shards: %w", s.Shards, ErrNotIntact)
	}
	if r.version > 2 {
		mark := make([]byte, markSize)
		if err := r.read(mark); err != nil {
			return s, fmt.Errorf("header: %w", err)
		}
		s.After.Seq = binary.BigEndian.Uint64(mark)
		readMark(mark[8:], &s.After)
	}
	s.End = s.After
	return s, nil
}

// readMark reads what follows the sequence of a mark.
func readMark(b []byte, m *Mark) {
	m.Epoch, m.Term = binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])
	copy(m.Chain[:], b[12:])
}

func (r *sectionReader) messages(s *Section, message func(seq uint64, data []byte) error) error {
	for {
		var n [8]byte
		if err := r.read(n[:]); err != nil {
			return fmt.Errorf("cut after %d messages: %w", s.Frames, err)
		}
		seq := binary.BigEndian.Uint64(n[:])
		if seq == 0 {
			return r.end(s)
		}
		var size [4]byte
		if err := r.read(size[:]); err != nil || seq != s.End.Seq+1 {
			return fmt.Errorf("message %d: %w", s.End.Seq+1, errors.Join(err, ErrNotIntact))
		}
		length := binary.BigEndian.Uint32(size[:])
		if length > maxMessage {
			return fmt.Errorf("message %d has %d bytes: %w", seq, length, ErrNotIntact)
		}
		data := make([]byte, length)
		if err := r.read(data); err != nil {
			return fmt.Errorf("message %d: %w", seq, err)
		}
		s.End.Seq, s.End.Chain = seq, events.NextChain(s.End.Chain, seq, data)
		s.Frames++
		if err := message(seq, data); err != nil {
			return err
		}
	}
}

func (r *sectionReader) end(s *Section) error {
	size := 8 + 32
	if r.version > 2 {
		size = 8 + markSize - 8
	}
	b := make([]byte, size)
	if err := r.read(b); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	at := s.End
	if r.version > 2 {
		readMark(b[8:], &at)
	} else {
		copy(at.Chain[:], b[8:])
	}
	want := r.sum.Sum(nil)
	got := make([]byte, sha256.Size)
	if err := r.read(got); err != nil || string(got) != string(want) || binary.BigEndian.Uint64(b) != s.Frames || at.Chain != s.End.Chain {
		return fmt.Errorf("checksum: %w", errors.Join(err, ErrNotIntact))
	}
	s.End = at
	return nil
}
