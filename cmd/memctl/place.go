package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mneme/internal/backup"
	"mneme/internal/backup/s3"
	"mneme/memory"
)

// placeHelp says what a place of backups is, for the verbs that take one.
const placeHelp = `A PLACE holds backups: a directory, or a bucket as s3://BUCKET/PREFIX. The keys
lie in a PLACE of their own: whoever has both has every memory. Buckets are reached as
AWS_ENDPOINT_URL, AWS_REGION and AWS_CA_BUNDLE say, with the credentials of
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or of AWS_SHARED_CREDENTIALS_FILE, from
which s3://PROFILE@BUCKET/PREFIX takes a profile.
`

// placeFlags name the places of a verb.
type placeFlags struct {
	log, keys string
	without   bool // what cannot be read
}

// from adds the flags of a verb that reads backups.
func (p *placeFlags) from(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.log, "from", "", "the `place` of the backups")
	cmd.Flags().StringVar(&p.keys, "keys-from", "", "the `place` of their keys")
}

// passOver adds the flag of a verb that needs to know what was destroyed.
func (p *placeFlags) passOver(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.without, "without-unreadable", false, "go on without manifests and lists that cannot be read: what they alone know as forgotten comes back")
}

// open gives the places, that of the keys as nil where it is not named.
func (p *placeFlags) open(a *app) (log, keys backup.Place, err error) {
	if log, err = openPlace(p.log, a.sys); err != nil || p.keys == "" {
		return log, nil, err
	}
	if keys, err = openPlace(p.keys, a.sys); err != nil {
		return nil, nil, err
	}
	if overlap(log.String(), keys.String()) || overlap(linked(log), linked(keys)) {
		return nil, nil, memory.Errorf(memory.CodeInvalid, "%s and %s are one place: whoever has both log and keys has every memory", log, keys).
			WithHint("keep the keys in a place of their own, best one that others may read than those of the log")
	}
	return log, keys, nil
}

func overlap(a, b string) bool {
	a, b = strings.TrimRight(filepath.ToSlash(a), "/")+"/", strings.TrimRight(filepath.ToSlash(b), "/")+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// linked is where a place lies once links are followed, as far as it is there.
func linked(p backup.Place) string {
	dir, is := p.(backup.Dir)
	if !is {
		return p.String()
	}
	for at, rest := dir.Path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return dir.Path
		}
	}
}

// openPlace opens a place by the name that people give it.
func openPlace(name string, sys system) (backup.Place, error) {
	if at, is := strings.CutPrefix(name, "s3://"); is {
		return openBucket(at, sys)
	}
	if strings.TrimSpace(name) == "" || strings.Contains(name, "$(") || strings.HasPrefix(strings.ToLower(name), "s3:") {
		return nil, memory.Errorf(memory.CodeInvalid, "%q is no place of backups", name).WithHint("name a directory, or a bucket as s3://BUCKET/PREFIX; a variable in parentheses is one that nobody has set")
	}
	if strings.Contains(name, "://") {
		return nil, memory.Errorf(memory.CodeInvalid, "%q is no place of backups", name).WithHint("name a directory, or a bucket as s3://BUCKET/PREFIX")
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return nil, memory.Errorf(memory.CodeInvalid, "%s is a file, not a place of backups", name).
			WithHint("name a directory; a backup in two files is named with --log and --keys")
	}
	return backup.Dir{Path: path}, nil
}

// openBucket opens [PROFILE@]BUCKET[/PREFIX]. How it is reached, and as whom, stands where the
// tools of S3 have it: in the environment and in a file of credentials, never in a flag.
func openBucket(at string, sys system) (backup.Place, error) {
	profile, rest, named := strings.Cut(at, "@")
	if !named {
		profile, rest = "", at
	}
	opt := s3.Options{
		Endpoint:  first(sys.getenv("AWS_ENDPOINT_URL_S3"), sys.getenv("AWS_ENDPOINT_URL")),
		Region:    first(sys.getenv("AWS_REGION"), sys.getenv("AWS_DEFAULT_REGION")),
		Plaintext: sys.getenv("MNEME_S3_PLAINTEXT") == "true",
	}
	opt.Bucket, opt.Prefix, _ = strings.Cut(rest, "/")
	if opt.Bucket == "" || strings.ContainsAny(profile, ":/") {
		return nil, memory.Errorf(memory.CodeInvalid, "the bucket is not named as s3://BUCKET/PREFIX or s3://PROFILE@BUCKET/PREFIX").
			WithHint("credentials stand in the environment or in a file, and not here")
	}
	if !named && sys.getenv("AWS_ACCESS_KEY_ID") != "" {
		opt.Credentials = s3.Credentials{ID: sys.getenv("AWS_ACCESS_KEY_ID"), Secret: sys.getenv("AWS_SECRET_ACCESS_KEY"), Session: sys.getenv("AWS_SESSION_TOKEN")}
	} else {
		opt.Credentials = s3.Credentials{File: sys.getenv("AWS_SHARED_CREDENTIALS_FILE"), Profile: first(profile, sys.getenv("AWS_PROFILE"), "default")}
		if home, err := homeOf(sys); opt.Credentials.File == "" && err == nil {
			opt.Credentials.File = filepath.Join(home, ".aws", "credentials")
		}
	}
	if file := sys.getenv("AWS_CA_BUNDLE"); file != "" {
		ca, err := os.ReadFile(file)
		if err != nil {
			return nil, memory.Errorf(memory.CodeInvalid, "AWS_CA_BUNDLE: %w", err)
		}
		opt.CA = ca
	}
	return s3.Open(opt)
}

func homeOf(sys system) (string, error) {
	if sys.home == nil {
		return "", os.ErrNotExist
	}
	return sys.home()
}
