package project

import (
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// ID names a project: host/owner/repository, or local/name-hash for one that no other machine
// can reach.
type ID string

// scp is the short form of ssh: [user@]host:path. A single letter before the colon is a drive.
var scp = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[^@/\s]+@)?(\[[0-9a-fA-F:.]+\]|[^:/@\s]{2,}):(.*)$`)
})

// sshHosts are hosts that only serve ssh for another one.
var sshHosts = map[string]string{
	"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org",
	"ssh.dev.azure.com": "dev.azure.com", "vs-ssh.visualstudio.com": "dev.azure.com",
}

// normalise makes an identity of a remote's address; top is the folder that a relative one
// starts from. It is "" for an address that names no repository. Letters are folded: the
// hosts that people use do not tell capitals apart, and people do not either.
func normalise(remote, top string) ID {
	remote = strings.TrimSpace(remote)
	host, repo, ok := split(remote)
	if !ok {
		if path := localPath(remote, top); path != "" {
			return localID(path)
		}
		return ""
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if real, ok := sshHosts[host]; ok {
		host = real
	}
	host = strings.TrimPrefix(host, "www.")
	repo = strings.Trim(path.Clean("/"+strings.ReplaceAll(repo, "\\", "/")), "/")
	repo = strings.TrimPrefix(repo, "~/")
	repo = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(repo, "/"), ".git"))
	if host == "dev.azure.com" { // v3/organisation/project/repository, by ssh
		repo = strings.Replace(strings.TrimPrefix(repo, "v3/"), "/_git/", "/", 1)
	}
	if host == "" || repo == "" || repo == "." {
		return ""
	}
	return ID(host + "/" + repo)
}

// localPath is where a remote lies that is on this machine, without what may be left out at its end.
func localPath(remote, top string) string {
	if remote = wholePath(remote, top); remote == "" {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(remote, "/.git"), ".git")
}

// wholePath is the path that a remote names on this machine.
func wholePath(remote, top string) string {
	rest, isURL := strings.CutPrefix(remote, "file://")
	if plain, err := url.PathUnescape(rest); isURL && err == nil {
		rest = plain
	}
	switch {
	case rest == "":
		return ""
	case filepath.IsAbs(rest):
		return filepath.Clean(rest)
	}
	return filepath.Join(top, rest)
}

// split takes host and path out of an address; ok is false for a path of this machine.
func split(remote string) (host, repo string, ok bool) {
	if scheme, _, found := strings.Cut(remote, "://"); found && !strings.EqualFold(scheme, "file") {
		u, err := url.Parse(remote)
		if err != nil { // a percent sign or a port that the standard does not know
			rest := remote[len(scheme)+3:]
			authority, p, _ := strings.Cut(rest, "/")
			if i := strings.LastIndexByte(authority, '@'); i >= 0 {
				authority = authority[i+1:]
			}
			authority, _, _ = strings.Cut(authority, ":")
			return authority, p, true
		}
		return u.Hostname(), u.Path, true
	}
	if m := scp().FindStringSubmatch(remote); m != nil && !strings.HasPrefix(remote, "file://") {
		return strings.Trim(m[1], "[]"), m[2], true
	}
	return "", "", false
}
