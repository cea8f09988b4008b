// Package certs keeps a certificate, its key and the authorities that the other side
// is checked against as their files say: files that were replaced count from the next
// connection on.
//
// Invariants: what is given out belongs together: a certificate, its own key, and
// authorities that were all read and checked; a key is in a file that others cannot get at;
// files that cannot be used, such as a
// certificate whose key is yet to be written, leave what counted before; no error and no
// log line holds anything of a key.
//
// Not its job: whose certificate it has to be, which Options.Check decides.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"
)

// ErrUnusable: the files are not there, do not belong together, or cannot be used.
var ErrUnusable = errors.New("certificates cannot be used")

// ModeError: others than the owner of a key's file may read it, or change it. It is
// ErrUnusable.
type ModeError struct {
	Path string
	Mode fs.FileMode
}

func (e *ModeError) Error() string {
	return fmt.Sprintf("%s has mode %04o: others may get at the key; chmod 600 %[1]s", e.Path, e.Mode)
}

// keptFrom are the modes that a key's file must not have. Its group may read it: that is
// how a process without rights is given one.
const keptFrom fs.FileMode = 0o027

// Kept is a *ModeError where others than its owner may get at the key in a file. What else
// may be wrong with the file, that it is not there, is found by who reads it.
func Kept(path string) error {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&keptFrom != 0 && runtime.GOOS != "windows" {
		return &ModeError{path, info.Mode().Perm()}
	}
	return nil
}

// Options of Open. Cert and Key are required.
type Options struct {
	Cert, Key string // files in PEM
	// Authorities is a file in PEM with the authorities that certificates of the other
	// side are of; "" = the other side shows none.
	Authorities string
	// Check refuses what was read, if it is not what is needed; nil takes everything.
	Check  func(pair *tls.Certificate, authorities *x509.CertPool) error
	Logger *slog.Logger // nil is silent
}

// Files are a certificate, its key and authorities. They may be used concurrently.
type Files struct {
	opt Options

	mu          sync.Mutex
	state       [3]fileState
	complaint   string // the last one that was logged, since the files could be used
	pair        *tls.Certificate
	authorities *x509.CertPool
}

// fileState is what tells that a file was replaced. Where the path is a symbolic link,
// it is that of the file which it leads to.
type fileState struct {
	size     int64
	modified time.Time
	mode     fs.FileMode
	file     fs.FileInfo
}

func (s fileState) equal(o fileState) bool {
	return s.size == o.size && s.modified.Equal(o.modified) && s.mode == o.mode && (s.file == nil) == (o.file == nil) && (s.file == nil || os.SameFile(s.file, o.file))
}

// Open reads the files. Errors are ErrUnusable.
func Open(opt Options) (*Files, error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Files{opt: opt}
	f.state = f.look()
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// Current returns what counts now; authorities is nil where Options name none.
func (f *Files) Current() (pair *tls.Certificate, authorities *x509.CertPool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.look(); !f.same(now) {
		f.state = now // before reading: what is replaced meanwhile is seen the next time
		f.renew()
	}
	return f.pair, f.authorities
}

// renew reads files that were replaced. The same complaint is logged once: every
// connection looks at the files, and they may be written in several steps.
func (f *Files) renew() {
	before := f.pair.Leaf
	switch err := f.read(); {
	case err != nil && err.Error() == f.complaint:
	case err != nil:
		f.complaint = err.Error()
		f.opt.Logger.Warn("replaced certificates are not taken, the ones before still count", "err", err, "expires", before.NotAfter)
	case f.complaint != "" || !f.pair.Leaf.Equal(before):
		f.complaint = ""
		f.opt.Logger.Info("certificates were replaced", "file", f.opt.Cert, "expires", f.pair.Leaf.NotAfter)
	}
}

// Reload reads the files now, also where they look as they did. changed says that another
// certificate counts from now on; after an error what counted before still does.
func (f *Files) Reload() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.pair.Leaf
	f.state = f.look()
	if err := f.read(); err != nil {
		return false, err
	}
	f.complaint = ""
	return !f.pair.Leaf.Equal(before), nil
}

// Expires returns the end of the certificate.
func (f *Files) Expires() time.Time {
	pair, _ := f.Current()
	return pair.Leaf.NotAfter
}

// Server returns the configuration of the side that is connected to. Where there are
// authorities, who connects must show a certificate of theirs.
func (f *Files) Server() *tls.Config {
	// Sessions are not resumed: a renewed certificate, and an authority that is trusted no
	// more, count for every new connection.
	now := func() *tls.Config {
		pair, authorities := f.Current()
		c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*pair}, SessionTicketsDisabled: true}
		if authorities != nil {
			c.ClientCAs, c.ClientAuth = authorities, tls.RequireAndVerifyClientCert
		}
		return c
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now(), nil }}
	if f.opt.Authorities != "" {
		c.ClientAuth = tls.RequireAndVerifyClientCert // for who looks at it: it is done by what is asked for above
	}
	return c
}

func (f *Files) same(now [3]fileState) bool {
	for i := range now {
		if !now[i].equal(f.state[i]) {
			return false
		}
	}
	return true
}

func (f *Files) look() (now [3]fileState) {
	for i, path := range []string{f.opt.Cert, f.opt.Key, f.opt.Authorities} {
		if info, err := os.Stat(path); path != "" && err == nil {
			now[i] = fileState{info.Size(), info.ModTime(), info.Mode(), info}
		}
	}
	return now
}

func (f *Files) read() error {
	if err := Kept(f.opt.Key); err != nil {
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	pair, err := tls.LoadX509KeyPair(f.opt.Cert, f.opt.Key)
	if err != nil {
		return fmt.Errorf("%w: %s with %s: %w", ErrUnusable, f.opt.Cert, f.opt.Key, err)
	}
	var authorities *x509.CertPool
	if f.opt.Authorities != "" {
		pem, err := os.ReadFile(f.opt.Authorities)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnusable, err)
		}
		authorities = x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%w: %s holds no certificate", ErrUnusable, f.opt.Authorities)
		}
	}
	if f.opt.Check != nil {
		if err := f.opt.Check(&pair, authorities); err != nil {
			return fmt.Errorf("%w: %w", ErrUnusable, err)
		}
	}
	f.pair, f.authorities = &pair, authorities
	return nil
}
