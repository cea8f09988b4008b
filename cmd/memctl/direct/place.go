package direct

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"mneme/cmd/memctl/offline"
	"mneme/internal/backup"
	"mneme/internal/backup/s3"
	"mneme/memory"
)

// open gives the places, that of the keys as nil where it is not named.
func (w Work) open(p offline.Places) (log, keys backup.Place, err error) {
	if log, err = openPlace(p.Log, w.env); err != nil || p.Keys == "" {
		return log, nil, err
	}
	if keys, err = openPlace(p.Keys, w.env); err != nil {
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
func openPlace(name string, env Env) (backup.Place, error) {
	if at, is := strings.CutPrefix(name, "s3://"); is {
		return openBucket(at, env)
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
func openBucket(at string, env Env) (backup.Place, error) {
	profile, rest, named := strings.Cut(at, "@")
	if !named {
		profile, rest = "", at
	}
	opt := s3.Options{
		Endpoint:  cmp.Or(env.Getenv("AWS_ENDPOINT_URL_S3"), env.Getenv("AWS_ENDPOINT_URL")),
		Region:    cmp.Or(env.Getenv("AWS_REGION"), env.Getenv("AWS_DEFAULT_REGION")),
		Plaintext: env.Getenv("MNEME_S3_PLAINTEXT") == "true",
	}
	opt.Bucket, opt.Prefix, _ = strings.Cut(rest, "/")
	if opt.Bucket == "" || strings.ContainsAny(profile, ":/") {
		return nil, memory.Errorf(memory.CodeInvalid, "the bucket is not named as s3://BUCKET/PREFIX or s3://PROFILE@BUCKET/PREFIX").
			WithHint("credentials stand in the environment or in a file, and not here")
	}
	if !named && env.Getenv("AWS_ACCESS_KEY_ID") != "" {
		opt.Credentials = s3.Credentials{ID: env.Getenv("AWS_ACCESS_KEY_ID"), Secret: env.Getenv("AWS_SECRET_ACCESS_KEY"), Session: env.Getenv("AWS_SESSION_TOKEN")}
	} else {
		opt.Credentials = s3.Credentials{File: env.Getenv("AWS_SHARED_CREDENTIALS_FILE"), Profile: cmp.Or(profile, env.Getenv("AWS_PROFILE"), "default")}
		if home, err := env.home(); opt.Credentials.File == "" && err == nil {
			opt.Credentials.File = filepath.Join(home, ".aws", "credentials")
		}
	}
	if file := env.Getenv("AWS_CA_BUNDLE"); file != "" {
		ca, err := os.ReadFile(file)
		if err != nil {
			return nil, memory.Errorf(memory.CodeInvalid, "AWS_CA_BUNDLE: %w", err)
		}
		opt.CA = ca
	}
	return s3.Open(opt)
}

func (e Env) home() (string, error) {
	if e.Home == nil {
		return "", os.ErrNotExist
	}
	return e.Home()
}
