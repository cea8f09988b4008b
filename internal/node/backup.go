package node

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// A backup of the log is a file of the messages of all shards, verbatim: a section for
// each shard, that of the directory, shard 0, last. So it holds the entry of each namespace
// whose home it holds. A section is:
//
//	"MNEMELOG" ‖ u8 version ‖ u16 shard ‖ u16 shards ‖ 16 cluster id
//	then, for each message: u64 sequence ‖ u32 length ‖ bytes
//	at the end: u64 0 ‖ u64 messages ‖ chain 32 ‖ SHA-256 of all before
//
// All integers are big-endian. It holds no plaintext; with the keyring it is
// the whole memory.
const (
	backupMagic   = "MNEMELOG"
	backupVersion = 2
	backupHeader  = len(backupMagic) + 1 + 2 + 2 + 16
)

// BackupLog writes the logs up to their present ends.
func (u *upkeep) BackupLog(ctx context.Context, w io.Writer) (memory.BackupReport, error) {
	var report memory.BackupReport
	for _, s := range slices.Backward(u.n.served) {
		one, err := s.backup(ctx, w)
		if err != nil {
			return memory.BackupReport{}, err
		}
		report = together(one, report)
	}
	return report, nil
}

func (s *served) backup(ctx context.Context, w io.Writer) (memory.BackupReport, error) {
	if s.peers != nil {
		streams{s.shard}.takeUp() // as for verify
	}
	if d := s.replica.Diverged(); d != nil {
		return memory.BackupReport{}, memory.Errorf(memory.CodeLogDiverged, "backup: the log does not hold all that the state holds: %v", d).WithHint("%s", d.Hint)
	}
	v := s.state.View()
	report, err := s.backupLog(ctx, v, w, nil)
	return report, notNow(errors.Join(err, v.Close()))
}

// together adds the report of a shard to those of the shards that follow it.
func together(first, rest memory.BackupReport) memory.BackupReport {
	first.Bytes, first.Frames, first.Events = first.Bytes+rest.Bytes, first.Frames+rest.Frames, first.Events+rest.Events
	if rest.Position != "" {
		first.Position += "," + rest.Position
	}
	return first
}

// keysWait bounds how long a backup waits for the keys that other nodes have.
const keysWait = 10 * time.Second

// BackupKeys writes the keyring; with its master key if asked. Of several nodes one may lack
// a key under which others have sealed what is in the log: it takes it in before.
func (u *upkeep) BackupKeys(ctx context.Context, w io.Writer, withMaster bool) (memory.BackupReport, error) {
	var r memory.BackupReport
	if p := u.n.peers; p != nil {
		ctx, cancel := context.WithTimeout(ctx, keysWait)
		defer cancel()
		if err := p.keys.CatchUp(ctx); err != nil {
			return r, memory.Errorf(memory.CodeUnavailable, "the keys of the cluster are not known to be all here: %v", err).
				WithHint("try again once most nodes are there").WithCause(err)
		}
	}
	for _, s := range slices.Backward(u.n.served) {
		r = together(memory.BackupReport{Position: s.stands()}, r)
	}
	if withMaster {
		return r, u.n.keys.ExportWithMaster(w)
	}
	return r, u.n.keys.Export(w)
}

// backupLog writes a log that is sound: it is read as a whole before anything is
// written, against the state where v is not nil, so that a backup never holds
// less than the state.
func (s *shard) backupLog(ctx context.Context, v *projections.View, w io.Writer, progress func(done, total uint64)) (memory.BackupReport, error) {
	if err := s.soundLog(ctx, v); err != nil {
		return memory.BackupReport{}, err
	}
	info, err := s.stream.Info(ctx)
	if err != nil {
		return memory.BackupReport{}, fmt.Errorf("backup: %w", err)
	}
	if v != nil && info.Last < v.Cursor().Seq {
		return memory.BackupReport{}, toldLess("backup", info.Last, v.Cursor().Seq)
	}
	return s.writeLog(w, info.Last, func(message func(eventlog.Message) error) error {
		if info.Last == 0 {
			return nil
		}
		return backupError(s.stream.Read(ctx, 1, info.Last, message))
	}, progress)
}

// writeLog writes the shard's section, of the messages up to last that read hands out.
func (s *shard) writeLog(w io.Writer, last uint64, read func(message func(eventlog.Message) error) error, progress func(done, total uint64)) (memory.BackupReport, error) {
	sum := sha256.New()
	buf := bufio.NewWriterSize(w, 1<<20)
	out := &counter{w: io.MultiWriter(buf, sum)}
	cluster16, err := events.ParseID(s.dir.node.ClusterID)
	if err != nil {
		return memory.BackupReport{}, err
	}
	head := binary.BigEndian.AppendUint16(append([]byte(backupMagic), backupVersion), s.id)
	head = binary.BigEndian.AppendUint16(head, uint16(len(s.shards)))
	if _, err := out.Write(append(head, cluster16[:]...)); err != nil {
		return memory.BackupReport{}, err
	}
	var chain events.Chain
	var report memory.BackupReport
	end := events.Position{Shard: s.id}
	err = read(func(m eventlog.Message) error {
		chain = events.NextChain(chain, m.Seq, m.Data)
		report.Frames++
		end = events.Position{Shard: s.id, Seq: m.Seq}
		if f, err := events.DecodeFrame(m.Data); err == nil {
			report.Events += uint64(len(f.Events))
			end.Epoch, end.Index = f.Epoch, uint32(len(f.Events)-1)
		}
		b := binary.BigEndian.AppendUint64(nil, m.Seq)
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.Data)))
		if _, err := out.Write(append(b, m.Data...)); err != nil {
			return err
		}
		if progress != nil {
			progress(m.Seq, last)
		}
		return nil
	})
	if err != nil {
		return report, err
	}
	b := binary.BigEndian.AppendUint64(nil, 0)
	b = append(binary.BigEndian.AppendUint64(b, report.Frames), chain[:]...)
	if _, err := out.Write(b); err != nil {
		return report, err
	}
	if _, err := out.Write(sum.Sum(nil)); err != nil {
		return report, err
	}
	report.Bytes, report.Position = out.n, end.String()
	return report, buf.Flush()
}

func backupError(err error) error {
	if err == nil {
		return nil
	}
	var gap *eventlog.GapError
	if errors.As(err, &gap) {
		return memory.Errorf(memory.CodeLogDiverged, "backup: the log is damaged: %v", gap).WithHint("memctl log repair writes it again from the state").WithCause(err)
	}
	return fmt.Errorf("backup: %w", err)
}

func (s *shard) soundLog(ctx context.Context, v *projections.View) error {
	if v != nil {
		report, _, err := s.verifyLog(ctx, v, nil)
		if err == nil && !report.OK {
			return damagedLog("backup", report)
		}
		return err
	}
	r, err := eventlog.Scrub(ctx, s.stream, eventlog.Tail{Shard: s.id}, nil, nil)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if d := r.Diverged(); d != nil {
		return memory.Errorf(memory.CodeLogDiverged, "backup: the log is damaged: %v", d).WithHint("%s", d.Hint)
	}
	return nil
}

// counter counts what passes through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// ErrBackup is wrapped when a backup file is not one, is cut, or was changed.
var ErrBackup = errors.New("not an intact backup")

// section is one shard's part of a backup.
type section struct {
	shard, shards uint16
	cluster       events.ID
	frames        uint64
}

// readBackup checks a backup file while it hands out its messages. It returns what its
// sections are, by shard.
func readBackup(r io.Reader, message func(shard uint16, seq uint64, data []byte) error) ([]section, error) {
	br := bufio.NewReaderSize(r, 1<<20)
	var found []section
	for {
		sum := sha256.New()
		s, err := readHeader(br, sum)
		if err == nil && found != nil && (s.shard+1 != found[0].shard || s.shards != found[0].shards || s.cluster != found[0].cluster) {
			err = fmt.Errorf("the section of shard %d does not follow that of shard %d: %w", s.shard, found[0].shard, ErrBackup)
		}
		if err == nil && found == nil && s.shard+1 != s.shards {
			err = fmt.Errorf("it begins with shard %d of %d: %w", s.shard, s.shards, ErrBackup)
		}
		if err == nil {
			s.frames, err = readSection(br, sum, func(seq uint64, data []byte) error { return message(s.shard, seq, data) })
		}
		if err != nil {
			return found, err
		}
		if found = append([]section{s}, found...); s.shard > 0 {
			continue
		}
		if _, err := br.ReadByte(); err != io.EOF {
			return found, fmt.Errorf("more behind its end: %w", ErrBackup)
		}
		return found, nil
	}
}

func readHeader(br io.Reader, sum hash.Hash) (s section, err error) {
	head := make([]byte, backupHeader)
	if err := readHashed(br, sum, head); err != nil || string(head[:len(backupMagic)]) != backupMagic {
		return s, fmt.Errorf("header: %w", ErrBackup)
	}
	if v := head[len(backupMagic)]; v > backupVersion {
		return s, fmt.Errorf("backup version %d: %w", v, events.ErrNewer)
	} else if v < backupVersion {
		return s, fmt.Errorf("backup version %d: %w", v, events.ErrOlder)
	}
	rest := head[len(backupMagic)+1:]
	s.shard, s.shards = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	copy(s.cluster[:], rest[4:])
	if s.shards == 0 || s.shards > maxShards {
		return s, fmt.Errorf("%d shards: %w", s.shards, ErrBackup)
	}
	return s, nil
}

func readSection(br io.Reader, sum hash.Hash, message func(seq uint64, data []byte) error) (frames uint64, err error) {
	var chain events.Chain
	for {
		var n [8]byte
		if err := readHashed(br, sum, n[:]); err != nil {
			return frames, fmt.Errorf("cut after %d messages: %w", frames, ErrBackup)
		}
		seq := binary.BigEndian.Uint64(n[:])
		if seq == 0 {
			return frames, sectionEnd(br, sum, frames, chain)
		}
		var size [4]byte
		if err := readHashed(br, sum, size[:]); err != nil || seq != frames+1 {
			return frames, fmt.Errorf("message %d: %w", frames+1, ErrBackup)
		}
		length := binary.BigEndian.Uint32(size[:])
		if length > 16<<20 {
			return frames, fmt.Errorf("message %d has %d bytes: %w", seq, length, ErrBackup)
		}
		data := make([]byte, length)
		if err := readHashed(br, sum, data); err != nil {
			return frames, fmt.Errorf("message %d: %w", seq, ErrBackup)
		}
		chain = events.NextChain(chain, seq, data)
		frames++
		if err := message(seq, data); err != nil {
			return frames, err
		}
	}
}

func sectionEnd(br io.Reader, sum hash.Hash, frames uint64, chain events.Chain) error {
	var end [8 + 32]byte
	if err := readHashed(br, sum, end[:]); err != nil {
		return fmt.Errorf("end: %w", ErrBackup)
	}
	want := sum.Sum(nil)
	got := make([]byte, 32)
	if _, err := io.ReadFull(br, got); err != nil || string(got) != string(want) ||
		binary.BigEndian.Uint64(end[:]) != frames || events.Chain(end[8:]) != chain {
		return fmt.Errorf("checksum: %w", ErrBackup)
	}
	return nil
}

func readHashed(r io.Reader, sum hash.Hash, b []byte) error {
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	_, err := sum.Write(b)
	return err
}
