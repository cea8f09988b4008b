package verbs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mneme/client"
	"mneme/internal/files"
	"mneme/memory"
)

// rememberedVersion is the version of the file's format.
const rememberedVersion = 1

// remembered is what `memctl use` keeps, in mneme/memctl.json of the user's
// configuration directory. Empty fields were never given.
type remembered struct {
	Version   int    `json:"version"`
	Addr      string `json:"addr,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Agent     string `json:"agent,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	// TokenFor are the addresses to which that token may be sent, whole and with commas between.
	TokenFor string `json:"token_for,omitempty"`
	TLSCA    string `json:"tls_ca,omitempty"`
	TLSCert  string `json:"tls_cert,omitempty"`
	TLSKey   string `json:"tls_key,omitempty"`
}

// tokenFor are the addresses for which the token was remembered: without a word about that
// it is the address that is remembered, or the one that counts without any.
func (r *remembered) tokenFor() string {
	if r.TokenFor != "" {
		return r.TokenFor
	}
	whole, err := wholeAddr(r.Addr)
	if err != nil {
		return ""
	}
	return whole
}

// tokenFits reports whether the token was remembered for each of the addresses of addr.
func (r *remembered) tokenFits(addr string) (bool, error) {
	whole, err := wholeAddr(addr)
	if err != nil {
		return false, err
	}
	known := strings.Split(r.tokenFor(), ",")
	for _, one := range strings.Split(whole, ",") {
		if !slices.Contains(known, one) {
			return false, nil
		}
	}
	return true, nil
}

// wholeAddr is an address, or several with commas between, as the client calls it: with
// scheme and port.
func wholeAddr(addr string) (string, error) {
	if _, err := client.New(addr, client.Options{}); err != nil {
		return "", err
	}
	list := strings.Split(addr, ",")
	for i, one := range list {
		c, err := client.New(one, client.Options{})
		if err != nil {
			return "", err
		}
		if list[i] = c.Addr(); !strings.Contains(list[i], "://") {
			list[i] = "unix://" + list[i]
		}
	}
	return strings.Join(list, ","), nil
}

func (a *app) rememberedPath() (string, error) {
	dir, err := a.sys.configDir()
	if err != nil {
		return "", homeless("the configuration directory", err)
	}
	return filepath.Join(dir, "mneme", "memctl.json"), nil
}

// homeless says that a folder of the user is not known, since nothing says where their home is.
func homeless(what string, err error) error {
	return memory.Errorf(memory.CodeInvalid, "%s is not known: %w", what, err).WithHint("set HOME to the folder of the user, as a login does")
}

// remembered reads the file; without one, or without a place for one, nothing
// is remembered.
func (a *app) remembered() (remembered, error) {
	path, err := a.rememberedPath()
	if err != nil {
		return remembered{Version: rememberedVersion}, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return remembered{Version: rememberedVersion}, nil
	}
	if err != nil {
		return remembered{}, fmt.Errorf("read what was remembered: %w", err)
	}
	var r remembered
	if err := json.Unmarshal(b, &r); err != nil {
		return remembered{}, memory.Errorf(memory.CodeInvalid, "%s is damaged: %w", path, err).
			WithHint("delete it and run `memctl use NAMESPACE` again")
	}
	if r.Version != rememberedVersion {
		return remembered{}, memory.Errorf(memory.CodeInvalid, "%s has version %d, this memctl knows %d", path, r.Version, rememberedVersion).
			WithHint("use a newer memctl, or delete the file")
	}
	return r, nil
}

func (a *app) remember(r remembered) error {
	path, err := a.rememberedPath()
	if err != nil {
		return err
	}
	r.Version = rememberedVersion
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode what to remember: %w", err)
	}
	return writeConfig(path, append(b, '\n'))
}

// writeConfig replaces a file in the user's configuration directory, which it makes.
func writeConfig(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the configuration directory: %w", err)
	}
	return replaceFile(path, 0o600, files.Bytes(b))
}

// replaceFile puts what write writes in the place of a file, as a whole. If write fails, path
// stays as it was.
func replaceFile(path string, mode fs.FileMode, write func(*os.File) error) error {
	begun := false
	err := files.Replace(path, mode, func(f *os.File) error {
		begun = true
		return write(f)
	})
	switch {
	case err == nil:
		return nil
	case !begun:
		return memory.Errorf(memory.CodeInvalid, "write %s: %w", path, err).
			WithHint("name a file in a directory that exists and can be written")
	}
	return fmt.Errorf("write %s: %w", path, err)
}
