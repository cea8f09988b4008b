package keyring

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"mneme/internal/storage"
)

// MasterSource is where the master key comes from, so that it need not lie
// beside the data. A service for keys is attached by implementing it.
type MasterSource interface {
	// MasterKey gives the same 32 bytes each time. It is asked once, by Open.
	MasterKey(ctx context.Context) ([32]byte, error)
	// String names the source in messages, without any of the key.
	String() string
}

// ParseMasterSource reads what a setting says: file (or nothing), file:PATH, env:NAME or
// command:PROGRAM ARGUMENTS. getenv looks up variables; a source of nil is the file in
// keys/.
func ParseMasterSource(setting string, getenv func(string) string) (MasterSource, error) {
	kind, rest, _ := strings.Cut(setting, ":")
	switch {
	case setting == "" || setting == "file":
		return nil, nil
	case kind == "file" && filepath.IsAbs(rest):
		return MasterPath{Path: rest}, nil
	case kind == "env" && rest != "":
		return MasterText{Name: "$" + rest, Text: getenv(rest)}, nil
	case kind == "command" && strings.TrimSpace(rest) != "":
		return MasterCommand{Args: strings.Fields(rest)}, nil
	}
	return nil, errors.New("the master key's source is none of file, file:/PATH, env:NAME, command:PROGRAM")
}

// masterTimeout is how long a source may take.
const masterTimeout = 30 * time.Second

// MasterText is a master key that somebody else has read, from the environment
// for example: the line of the key file, or 64 hexadecimal digits alone.
type MasterText struct {
	redacted
	Name string // for messages
	Text string
}

// MasterKey implements MasterSource.
func (m MasterText) MasterKey(context.Context) (key [32]byte, err error) {
	if strings.TrimSpace(m.Text) == "" {
		return key, fmt.Errorf("%w: %s is empty or not set", ErrMasterKeyLost, m.Name)
	}
	s, err := parseMaster(m.Text)
	if err != nil {
		return key, fmt.Errorf("%s is no master key: %w", m.Name, err)
	}
	defer s.wipe()
	return *s, nil
}

// String names the source.
func (m MasterText) String() string { return m.Name }

// Format prints String for every verb.
func (m MasterText) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, m.Name) }

// MasterPath is a file that somebody else keeps, in the form that MasterText takes: a
// mounted secret for example. Nobody but its owner and its group may read it.
type MasterPath struct {
	Path string
}

// MasterKey implements MasterSource.
func (m MasterPath) MasterKey(ctx context.Context) (key [32]byte, err error) {
	info, err := os.Stat(m.Path)
	if err != nil {
		return key, fmt.Errorf("%w: %w", ErrMasterKeyLost, err)
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 && runtime.GOOS != "windows" {
		return key, fmt.Errorf("%s has mode %04o: others may get at the master key; chmod 600 %[1]s", m.Path, mode)
	}
	text, err := readWithin(ctx, m.Path)
	defer clear(text)
	if err != nil {
		return key, fmt.Errorf("%w: %w", ErrMasterKeyLost, err)
	}
	return MasterText{Name: m.Path, Text: string(text)}.MasterKey(ctx)
}

// readWithin reads a file. Of one that does not answer, as a pipe or a mount that hangs, it
// leaves the reading behind when ctx ends.
func readWithin(ctx context.Context, path string) ([]byte, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := os.ReadFile(path)
		done <- read{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// String names the source.
func (m MasterPath) String() string { return m.Path }

// MasterCommand is a program that writes the master key, in the form that
// MasterText takes, to its standard output.
type MasterCommand struct {
	Args []string // the program and its arguments; no shell reads them
}

// MasterKey implements MasterSource.
func (m MasterCommand) MasterKey(ctx context.Context) (key [32]byte, err error) {
	if len(m.Args) == 0 {
		return key, fmt.Errorf("%w: no command given", ErrMasterKeyLost)
	}
	cmd := exec.CommandContext(ctx, m.Args[0], m.Args[1:]...)
	cmd.WaitDelay = time.Second // for whom it has started, and left the output to
	out, err := cmd.Output()
	defer clear(out)
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr[:min(len(exit.Stderr), 512)])))
		}
		return key, fmt.Errorf("%w: %s: %w", ErrMasterKeyLost, m, err)
	}
	return MasterText{Name: m.String(), Text: string(out)}.MasterKey(ctx)
}

// String names the program; its arguments may be nobody's business.
func (m MasterCommand) String() string {
	if len(m.Args) == 0 {
		return "no command"
	}
	return "command " + m.Args[0]
}

func parseMaster(text string) (*secret, error) {
	text = strings.TrimSpace(text)
	if len(text) == 2*len(secret{}) {
		s := new(secret)
		if _, err := hex.Decode(s[:], []byte(text)); err == nil {
			return s, nil
		}
	}
	return decodeMaster([]byte(text))
}

// masterKey gives the master key for an image; nil where it is the first. Errors:
// ErrMasterKeyLost also where the source has another key than the image needs.
func masterKey(opt *Options, image []byte) (*secret, error) {
	var print string
	if len(image) > fingerprintSize {
		print = string(image[1 : 1+fingerprintSize])
	}
	if opt.Master == nil {
		return masterFile{opt}.get(print, image == nil)
	}
	return sourceKey(opt, print)
}

// sourceKey gives the key of opt.Master, if its fingerprint is print, or print is empty.
func sourceKey(opt *Options, print string) (*secret, error) {
	ctx, cancel := context.WithTimeout(context.Background(), masterTimeout)
	defer cancel()
	key, err := opt.Master.MasterKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMasterSource, err)
	}
	s := secret(key)
	clear(key[:])
	if print != "" && string(fingerprint(&s)) != print {
		s.wipe()
		return nil, fmt.Errorf("%w: the keyring was sealed under another one than that of %s", ErrMasterKeyLost, opt.Master)
	}
	for _, path := range (masterFile{opt}).paths() {
		if _, err := opt.FS.Stat(path); err == nil {
			opt.Log.Warn("a master key lies beside the data although it comes from elsewhere: remove the file", "file", path, "source", opt.Master.String())
		}
	}
	return &s, nil
}

// CheckMaster says why the next Open would not find the master key where the keyring had it from;
// nil where it would. It changes nothing. Errors: ErrMasterKeyLost, ErrMasterSource, ErrClosed.
func CheckMaster(k *Keyring) error {
	print, err := masterPrint(k)
	if err != nil {
		return err
	}
	if k.origin.Master == nil {
		return masterFile{k.origin}.there(print)
	}
	key, err := sourceKey(k.origin, print)
	if err == nil {
		key.wipe()
	}
	return err
}

func masterPrint(k *Keyring) (string, error) {
	k.write.Lock()
	defer k.write.Unlock()
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.closed {
		return "", ErrClosed
	}
	return string(fingerprint(k.master)), nil
}

// there is nil where one copy at least holds the key of a fingerprint; it does not heal the other.
func (m masterFile) there(print string) error {
	for _, path := range m.paths() {
		key, err := m.readCopy(path)
		if err != nil {
			continue
		}
		found := string(fingerprint(key)) == print
		key.wipe()
		if found {
			return nil
		}
	}
	return fmt.Errorf("%w: neither %s nor its copy holds it", ErrMasterKeyLost, m.paths()[0])
}

// masterFile keeps the master key in two copies in the folder of the keyring.
type masterFile struct{ *Options }

func (m masterFile) paths() [2]string {
	path := filepath.Join(m.keys(), masterName)
	return [2]string{path, path + copySuffix}
}

// get reads the key whose fingerprint is print, or any if print is empty, and
// heals the other copy. create makes a key where there is no file.
func (m masterFile) get(print string, create bool) (*secret, error) {
	key, err := m.read(print)
	if key != nil || err != nil {
		return key, err
	}
	if !create {
		return nil, fmt.Errorf("%w: no %s", ErrMasterKeyLost, m.paths()[0])
	}
	if key, err = newSecret(m.Rand); err != nil {
		return nil, fmt.Errorf("make master key: %w", err)
	}
	return key, m.write(key)
}

// read gives nil and no error where there is no file.
func (m masterFile) read(print string) (*secret, error) {
	var found [2]*secret
	var faults [2]error
	for i, path := range m.paths() {
		if found[i], faults[i] = m.readCopy(path); errors.Is(faults[i], ErrNewerFormat) {
			return nil, faults[i]
		}
	}
	if err := removeTemps(m.FS, m.keys(), masterName); err != nil {
		return nil, err
	}
	best := -1
	for i := len(found) - 1; i >= 0; i-- { // the first, where nothing tells them apart
		if found[i] != nil && (print == "" || string(fingerprint(found[i])) == print) {
			best = i
		}
	}
	switch {
	case best >= 0:
		return found[best], m.heal(found, best)
	case found[0] != nil || found[1] != nil:
		return nil, fmt.Errorf("%w: the keyring was sealed under another one than that in %s", ErrMasterKeyLost, m.paths()[0])
	case errors.Is(faults[0], fs.ErrNotExist) && errors.Is(faults[1], fs.ErrNotExist):
		return nil, nil
	}
	return nil, fmt.Errorf("read master key: first copy: %w; second copy: %w", faults[0], faults[1])
}

func (m masterFile) readCopy(path string) (*secret, error) {
	text, err := storage.ReadFile(m.FS, path)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	return decodeMaster(text)
}

func (m masterFile) heal(found [2]*secret, best int) error {
	other := 1 - best
	if found[other] != nil && *found[other] == *found[best] {
		return nil
	}
	path := m.paths()[other]
	m.Log.Warn("copy of the master key healed", "file", path)
	text := encodeMaster(found[best])
	defer clear(text)
	if err := storage.ReplaceFile(m.FS, path, text, keyMode); err != nil {
		return fmt.Errorf("heal %s: %w", path, err)
	}
	return nil
}

// write makes both copies durable.
func (m masterFile) write(key *secret) error {
	if err := storage.MkdirAll(m.FS, m.keys(), keysDirMode); err != nil {
		return fmt.Errorf("write master key: %w", err)
	}
	text := encodeMaster(key)
	defer clear(text)
	for _, path := range m.paths() {
		if err := storage.ReplaceFile(m.FS, path, text, keyMode); err != nil {
			return fmt.Errorf("write master key: %w", err)
		}
	}
	return nil
}
