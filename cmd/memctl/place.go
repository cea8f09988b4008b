package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mneme/internal/backup"
	"mneme/memory"
)

// placeHelp says what a place of backups is, for the verbs that take one.
const placeHelp = `A PLACE holds backups: a directory, or a bucket as s3://BUCKET/PREFIX. The keys
lie in a PLACE of their own: whoever has both has every memory.
`

// placeFlags name the places of a verb.
type placeFlags struct{ log, keys string }

// from adds the flags of a verb that reads backups.
func (p *placeFlags) from(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.log, "from", "", "the `place` of the backups")
	cmd.Flags().StringVar(&p.keys, "keys-from", "", "the `place` of their keys")
}

// open gives the places, that of the keys as nil where it is not named.
func (p *placeFlags) open(a *app) (log, keys backup.Place, err error) {
	if log, err = openPlace(p.log, a.sys); err != nil || p.keys == "" {
		return log, nil, err
	}
	if keys, err = openPlace(p.keys, a.sys); err != nil {
		return nil, nil, err
	}
	if overlap(log.String(), keys.String()) {
		return nil, nil, memory.Errorf(memory.CodeInvalid, "%s and %s are one place: whoever has both log and keys has every memory", log, keys).
			WithHint("keep the keys in a place of their own, best one that others may read than those of the log")
	}
	return log, keys, nil
}

func overlap(a, b string) bool {
	a, b = strings.TrimRight(filepath.ToSlash(a), "/")+"/", strings.TrimRight(filepath.ToSlash(b), "/")+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// place opens a place by the name that people give it.
func openPlace(name string, _ system) (backup.Place, error) {
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
