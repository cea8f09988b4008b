package auth

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/memory"
)

const secret = "a-token-of-24-characters"

func gate(t *testing.T, mode Mode, token string) *Gate {
	t.Helper()
	g, err := NewGate(mode, token)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestRequest(t *testing.T) {
	tests := map[string]struct {
		mode   Mode
		header string
		ok     bool
	}{
		"off":            {ModeOff, "", true},
		"off, any token": {ModeOff, "Bearer nonsense", true},
		"none":           {ModeToken, "", false},
		"right":          {ModeToken, "Bearer " + secret, true},
		"lower case":     {ModeToken, "bearer  " + secret + " ", true},
		"wrong":          {ModeToken, "Bearer " + secret + "x", false},
		"prefix":         {ModeToken, "Bearer " + secret[:10], false},
		"empty":          {ModeToken, "Bearer ", false},
		"basic":          {ModeToken, "Basic " + secret, false},
		"bare":           {ModeToken, secret, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Authorization", tt.header)
			id, err := gate(t, tt.mode, secret).Request(r)
			if err == nil && id != (Identity{Principal: "public", Operator: tt.mode == ModeToken}) {
				t.Errorf("identity %+v", id)
			}
			if (err == nil) != tt.ok {
				t.Fatalf("error = %v", err)
			}
			if err == nil {
				return
			}
			if memory.CodeOf(err) != memory.CodeUnauthenticated {
				t.Errorf("code = %s", memory.CodeOf(err))
			}
			if e := memory.AsError(err); strings.Contains(e.Message+e.Hint, secret) {
				t.Errorf("the error shows the token: %v %s", e, e.Hint)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	g := gate(t, ModeToken, secret)
	for _, tt := range []struct {
		user, password, token string
		ok                    bool
	}{
		{"", "", secret, true}, {"", secret, "", true}, {"anyone", secret, "", true},
		{secret, "", "", false}, {"", "", "", false}, {"", "x", "y", false},
	} {
		if got := g.Credentials(tt.user, tt.password, tt.token); got != tt.ok {
			t.Errorf("Credentials(%q, %q, %q) = %t", tt.user, tt.password, tt.token, got)
		}
	}
	if !gate(t, ModeOff, "").Credentials("", "", "") {
		t.Error("off refuses")
	}
}

func TestNewGateRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		mode  Mode
		token string
	}{
		"mode": {"open", ""}, "empty": {ModeToken, ""}, "short": {ModeToken, "short"},
		"long": {ModeToken, strings.Repeat("x", 513)}, "space": {ModeToken, "has a space but is long enough"},
	} {
		if _, err := NewGate(tt.mode, tt.token); memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("%s: error = %v", name, err)
		} else if tt.token != "" && strings.Contains(err.Error(), tt.token) {
			t.Errorf("%s: the error shows the token", name)
		}
	}
}

func TestTokenIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "operator.token")
	first, created, err := LoadOrCreateToken(nil, path, nil)
	if err != nil || !created || CheckToken(first) != nil {
		t.Fatalf("first: %q %t %v", first, created, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode = %o", info.Mode().Perm())
	}
	second, created, err := LoadOrCreateToken(nil, path, nil)
	if err != nil || created || second != first {
		t.Errorf("second: %q %t %v", second, created, err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTokenOfManyStartsIsOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "operator.token")
	var all sync.Map
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			token, _, err := LoadOrCreateToken(nil, path, nil)
			if err != nil {
				t.Error(err)
			}
			all.Store(token, true)
		})
	}
	group.Wait()
	n := 0
	all.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d different tokens", n)
	}
}

func TestTokenFileIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("file modes are not those of Unix")
	}
	for name, tt := range map[string]struct {
		mode    os.FileMode
		content string
		code    memory.Code
	}{
		"group can read":  {0o640, secret, memory.CodeForbidden},
		"others can read": {0o604, secret, memory.CodeForbidden},
		"empty":           {0o600, "", memory.CodeInvalid},
		"too long":        {0o600, strings.Repeat("x", 600), memory.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "operator.token")
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			_, _, err := LoadOrCreateToken(nil, path, nil)
			if memory.CodeOf(err) != tt.code || memory.AsError(err).Hint == "" {
				t.Errorf("error = %v, hint %q", err, memory.AsError(err).Hint)
			}
			if tt.content != "" && err != nil && strings.Contains(err.Error(), tt.content) {
				t.Error("the error shows the token")
			}
		})
	}
	dir := t.TempDir()
	if _, _, err := LoadOrCreateToken(nil, dir, nil); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("a directory: %v", err)
	}
}

func TestTokenFailures(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := LoadOrCreateToken(nil, filepath.Join(dir, "a"), iotest.ErrReader(os.ErrDeadlineExceeded)); err == nil {
		t.Error("no error without randomness")
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := LoadOrCreateToken(nil, filepath.Join(file, "below"), nil); err == nil {
		t.Error("no error below a file")
	}
	token, _, err := LoadOrCreateToken(nil, filepath.Join(dir, "b"), bytes.NewReader(make([]byte, 32)))
	if err != nil || token != "mneme_"+strings.Repeat("A", 43) {
		t.Errorf("token = %q, %v", token, err)
	}
}

// A token that somebody may have been told is the same after a loss of power: the
// file once was not synced, and the next start made another.
func TestTokenSurvivesPowerLoss(t *testing.T) {
	disk := vfs.NewCrashableMem()
	want, _, err := LoadOrCreateToken(disk, "/data/keys/operator.token", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, created, err := LoadOrCreateToken(disk.CrashClone(vfs.CrashCloneCfg{}), "/data/keys/operator.token", nil)
	if err != nil || created || got != want {
		t.Errorf("the token was %q and is %q (made anew: %v), %v", want, got, created, err)
	}
}

// TestTokenOfALikeDigest: a comparison of part of the digests would take it.
func TestTokenOfALikeDigest(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	g, err := NewGate(ModeToken, token)
	if err != nil {
		t.Fatal(err)
	}
	want := sha256.Sum256([]byte(token))
	for _, at := range []int{0, sha256.Size - 2} {
		like := token
		for i := 0; ; i++ {
			like = fmt.Sprintf("%032x", i)
			if sum := sha256.Sum256([]byte(like)); bytes.Equal(sum[at:at+2], want[at:at+2]) {
				break
			}
		}
		if g.Credentials("", "", like) {
			t.Errorf("another token whose digest is the same at %d is taken", at)
		}
	}
}

// Who was admitted hears that the token counts no more, and of nothing else.
func TestAReplacedTokenIsTold(t *testing.T) {
	const one, two = "the-first-operator-token", "another-operator-token"
	g, err := NewGate(ModeToken, one)
	if err != nil {
		t.Fatal(err)
	}
	told := g.Replaced()
	over := func() bool {
		select {
		case <-told:
			return true
		default:
			return false
		}
	}
	if changed, err := g.SetToken(one); changed || err != nil || over() {
		t.Errorf("the same token: changed %v, %v, told %v", changed, err, over())
	}
	if _, err := g.SetToken("short"); err == nil || over() {
		t.Errorf("no token: %v, told %v", err, over())
	}
	if changed, err := g.SetToken(two); !changed || err != nil || !over() {
		t.Errorf("another token: changed %v, %v, told %v", changed, err, over())
	}
	if told = g.Replaced(); over() {
		t.Error("the new one is told to be replaced")
	}
	off, err := NewGate(ModeOff, "")
	if err != nil || off.Replaced() != nil {
		t.Errorf("nobody is asked for a token: %v", err)
	}
}
