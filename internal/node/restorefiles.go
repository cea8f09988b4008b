package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/backup"
	"mneme/internal/keyring"
	"mneme/memory"
)

// Restore makes a new data directory from a backup of log and keyring in two files, see
// RestoreFrom.
func (o Offline) Restore(ctx context.Context, dir, logPath, keysPath string, progress func(done, total uint64)) (memory.RebuildReport, error) {
	return o.RestoreFiles(ctx, dir, logPath, keysPath, Until{}, progress)
}

// RestoreFiles is Restore up to a place in the log.
func (o Offline) RestoreFiles(ctx context.Context, dir, logPath, keysPath string, until Until, progress func(done, total uint64)) (memory.RebuildReport, error) {
	o.Config.setDefaults()
	// Nothing is made in somebody's folder, and nothing of a log that is not whole.
	if abs, err := filepath.Abs(dir); err == nil {
		if err := restorable(o.Config.FS, abs); err != nil {
			return memory.RebuildReport{}, err
		}
	}
	keys, err := readKinds(ctx, o.Config.FS, logPath, keysPath)
	if err != nil {
		return memory.RebuildReport{}, err
	}
	defer clear(keys)
	out, err := o.RestoreFrom(ctx, dir, RestoreSource{Log: logFile(o.Config.FS, logPath), Keys: keys, Until: until}, progress)
	return out.RebuildReport, err
}

// readKinds reads the keys, and says which of the two files is which when they were
// mixed up: each would be a damaged one where the other belongs. The keys are read once,
// so that they may come from a pipe, and never be in a file in clear.
func readKinds(ctx context.Context, fsys vfs.FS, logPath, keysPath string) (keys []byte, err error) {
	log, err := logHead(fsys, logPath)
	var kerr error
	if err == nil {
		keys, kerr = readKeys(ctx, fsys, keysPath)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err = errors.Join(err, kerr); err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%v", err).WithHint("name the two files of a backup that can be read")
	}
	keysAsLog, logAsKeys := keyring.IsBackup(log), backup.IsLog(keys)
	switch {
	case keysAsLog && logAsKeys:
		return nil, memory.Errorf(memory.CodeInvalid, "%s is the backup of the keys and %s that of the log", logPath, keysPath).
			WithHint("it is the other way round: --log %s --keys %s", keysPath, logPath)
	case keysAsLog:
		return nil, memory.Errorf(memory.CodeInvalid, "%s is the backup of the keys, not of the log", logPath).WithHint("give the log's file to --log")
	case logAsKeys:
		return nil, memory.Errorf(memory.CodeInvalid, "%s is the backup of the log, not of the keys", keysPath).WithHint("give the keys' file to --keys")
	}
	return keys, nil
}

// keysOf reads a backup of the keys that comes without a file of the log.
func keysOf(ctx context.Context, fsys vfs.FS, path string) ([]byte, error) {
	keys, err := readKeys(ctx, fsys, path)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%v", err).WithHint("name a backup of the keys that can be read")
	}
	if backup.IsLog(keys) {
		return nil, memory.Errorf(memory.CodeInvalid, "%s is the backup of a log, not of the keys", path).WithHint("give the keys' file to --keys")
	}
	return keys, nil
}

// logHead reads what tells one sort of backup from the other. The log is read more than
// once, so it may not come from a pipe.
func logHead(fsys vfs.FS, path string) ([]byte, error) {
	if info, err := fsys.Stat(path); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeCharDevice) != 0 {
		return nil, fmt.Errorf("%s is no file: the log is read twice", path)
	}
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	head, err := readHead(f)
	return head, errors.Join(err, f.Close())
}

// readHead reads as many bytes as a magic has; of a shorter file all.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, backup.HeadSize)
	n, err := io.ReadFull(r, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // it is neither of them
	}
	return head[:n], err
}

// readKeys reads the backup of the keys, of that of a log only the beginning. Opening and
// reading a pipe wait for whoever writes into it, and nothing but the end of ctx ends
// that: then they are left to the end of the process.
func readKeys(ctx context.Context, fsys vfs.FS, path string) ([]byte, error) {
	type result struct {
		keys []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		f, err := fsys.Open(path)
		if err != nil {
			read <- result{err: err}
			return
		}
		keys, err := readHead(f)
		if err == nil && !backup.IsLog(keys) {
			var rest []byte
			rest, err = io.ReadAll(f)
			keys = append(keys, rest...)
			clear(rest)
		}
		read <- result{keys, errors.Join(err, f.Close())}
	}()
	select {
	case r := <-read:
		return r.keys, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// logFile is the backup of a log in one file.
func logFile(fsys vfs.FS, path string) backup.Log {
	return backup.Log{Name: path, Files: []backup.File{{Name: path, Open: func(context.Context) (io.ReadCloser, error) { return fsys.Open(path) }}}}
}
