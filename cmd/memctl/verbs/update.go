package verbs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"mneme/internal/agentsync"
	"mneme/memory"
)

const (
	// releaseSums lists the files of a release with their checksums. The names of the
	// archives say its version.
	releaseSums    = "SHA256SUMS"
	maxReleaseSums = 64 << 10

	updateTimeout    = 5 * time.Second
	maxUpdateTimeout = time.Minute
)

// What the release that was found is beside this program.
const (
	releaseNewer   = "newer"
	releaseSame    = "same"
	releaseOlder   = "older"
	releaseUnknown = "unknown" // this program does not say its version
)

// updateFound is the answer of update --check.
type updateFound struct {
	Current string `json:"current"`
	Latest  string `json:"latest"`
	State   string `json:"state"`
	Archive string `json:"archive,omitempty"` // address of the one for this platform, if there is one
	From    string `json:"from"`
}

func updateCmd(a *app) *cobra.Command {
	var check bool
	var from string
	timeout := updateTimeout
	cmd := &cobra.Command{
		Use:   "update --check",
		Short: "Ask whether there is a newer release; nothing is downloaded or replaced",
		Long: `Ask the folder that releases are downloaded from whether there is a newer one. It is
asked for its list of checksums, SHA256SUMS, and for nothing else; nothing about this
machine or its memories is sent. Mneme has no public host yet, so the folder has to be
named: it is where what make release has made lies, under https.

Nothing is downloaded or replaced: the answer names what installs the release. The exit
code is 0 whether or not there is a newer one; "state" of the answer says newer, same,
older, or unknown where memctl was built without a version.`,
		Example: `  memctl update --check --from https://example.org/mneme
  MNEME_RELEASES=https://example.org/mneme memctl update --check --json`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !check {
				return usage(cmd, "memctl does not replace itself").WithHint("`memctl update --check` says whether there is a newer release, and how to install it")
			}
			if timeout <= 0 || timeout > maxUpdateTimeout {
				return usage(cmd, "--timeout is %s, which is not more than 0s and up to %s", timeout, maxUpdateTimeout)
			}
			base, err := releasesAt(first(from, a.sys.getenv("MNEME_RELEASES")))
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			sums, err := fetchSums(ctx, base, a.sys.version.Version)
			if errors.Is(err, context.DeadlineExceeded) {
				err = memory.Errorf(memory.CodeTimeout, "%s did not answer within %s", base, timeout).
					WithHint("look at the address, or give it longer with --timeout")
			}
			if err != nil {
				return err
			}
			found, err := compareRelease(base, sums, a.sys.version)
			if err != nil {
				return err
			}
			return a.emit(found, []string{found.Latest}, func() { printUpdate(a, found) })
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "ask, which is all that it does")
	cmd.Flags().StringVar(&from, "from", "", "`URL` of the folder that releases are downloaded from (MNEME_RELEASES)")
	cmd.Flags().DurationVar(&timeout, "timeout", updateTimeout, "how long to wait for the answer")
	return cmd
}

// releasesAt checks the address of the folder. It is https, for what comes from there says
// what to install; in clear it may be on this machine.
func releasesAt(from string) (string, error) {
	if from == "" {
		return "", memory.Errorf(memory.CodeInvalid, "nobody has said where releases are, and Mneme has no public host yet").
			WithHint("give --from URL or set MNEME_RELEASES to the folder that has %s, which `make release` makes; or build it from source: `git pull && make install`", releaseSums)
	}
	u, err := url.Parse(from)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", memory.Errorf(memory.CodeInvalid, "the address of the releases is not like https://example.org/mneme").WithHint("it is that of the folder that has %s", releaseSums)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", memory.Errorf(memory.CodeInvalid, "the address of the releases has more than a host and a folder").WithHint("leave out user, password, ? and #")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", memory.Errorf(memory.CodeInvalid, "%s would be asked in clear, where anybody on the way can answer", from).WithHint("use https://; http:// is for this machine only")
	}
	return strings.TrimRight(from, "/"), nil
}

// fetchSums reads the list of checksums.
func fetchSums(ctx context.Context, base, version string) ([]byte, error) {
	at := base + "/" + releaseSums
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	req.Header.Set("User-Agent", "memctl/"+version)
	plain := req.URL.Scheme == "http"
	transport := http.DefaultTransport.(*http.Transport).Clone() // it heeds the variables of proxies
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		if len(via) > 5 || to.URL.Scheme != "https" && !(plain && loopback(to.URL.Hostname())) {
			return errors.New("it leads on to where it must not")
		}
		return nil
	}}
	answer, err := c.Do(req)
	if err != nil {
		return nil, away(at, err)
	}
	defer answer.Body.Close()
	switch code := answer.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		return nil, memory.Errorf(memory.CodeNotFound, "there is no %s", at).WithHint("look at the address: it is that of the folder with the files of `make release`")
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil, memory.Errorf(memory.CodeForbidden, "%s may not be read: %s", at, answer.Status).WithHint("releases are read without signing in")
	case code != http.StatusOK:
		return nil, memory.Errorf(memory.CodeUnavailable, "%s answered %s", at, answer.Status).WithHint("try again later")
	}
	sums, err := io.ReadAll(io.LimitReader(answer.Body, maxReleaseSums+1))
	if err != nil {
		return nil, away(at, err)
	}
	if len(sums) > maxReleaseSums {
		return nil, memory.Errorf(memory.CodeTooLarge, "%s has more than %d bytes, so it is no list of a release", at, maxReleaseSums).WithHint("look at the address")
	}
	return sums, nil
}

// away is the error for a host that gave no answer, or not all of it.
func away(at string, err error) error {
	if errors.Is(err, context.Canceled) {
		return memory.Errorf(memory.CodeTimeout, "interrupted").WithCause(err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // the address is in the message
	}
	return memory.Errorf(memory.CodeUnavailable, "cannot read %s: %w", at, err).
		WithHint("look at the address, and whether this machine may reach it; HTTPS_PROXY names a proxy")
}

// releaseArchive is a line of the list, and in it the version and the platform of an archive.
var releaseArchive = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[0-9a-f]{64} [ *](mneme-(v[0-9A-Za-z.+-]+)-([a-z0-9]+)-([a-z0-9]+)\.(?:tar\.gz|zip))\r?$`)
})

// compareRelease finds the version in a list of checksums.
func compareRelease(base string, sums []byte, own memory.VersionInfo) (updateFound, error) {
	found := updateFound{Current: own.Version, From: base}
	for _, m := range releaseArchive().FindAllStringSubmatch(string(sums), -1) {
		archive, version := m[1], m[2]
		if !semver.IsValid(version) || found.Latest != "" && found.Latest != version {
			found.Latest = ""
			break
		}
		found.Latest = version
		if m[3] == own.OS && m[4] == own.Arch {
			found.Archive = base + "/" + archive
		}
	}
	if found.Latest == "" {
		return found, memory.Errorf(memory.CodeInvalid, "%s/%s does not list the archives of one release of Mneme", base, releaseSums).
			WithHint("look at the address: it is that of the folder with the files of `make release`")
	}
	switch order := semver.Compare(found.Latest, own.Version); {
	case !semver.IsValid(own.Version):
		found.State = releaseUnknown
	case order > 0:
		found.State = releaseNewer
	case order < 0:
		found.State = releaseOlder
	default:
		found.State = releaseSame
	}
	return found, nil
}

func printUpdate(a *app, f updateFound) {
	switch f.State {
	case releaseSame:
		a.printf("%s is the newest release\n", oneLine(f.Current))
		return
	case releaseOlder:
		a.printf("this memctl is %s, and the newest release %s is older\n", oneLine(f.Current), f.Latest)
		return
	case releaseUnknown:
		a.printf("the newest release is %s; this memctl does not say its version (%s)\n", f.Latest, oneLine(f.Current))
	default:
		a.printf("%s is there; this memctl is %s\n", f.Latest, oneLine(f.Current))
	}
	switch {
	case f.Archive == "":
		a.println("it has no archive for " + oneLine(a.sys.version.OS+"/"+a.sys.version.Arch))
		a.next("build it from source: git pull && make install")
	case strings.HasSuffix(f.Archive, ".zip"):
		a.next("%s", f.Archive)
	default:
		a.next("%s | %s", agentsync.Command("curl", "-fsSL", f.From+"/install.sh"), agentsync.Command("sh", "-s", "--", "--from", f.From))
	}
}
