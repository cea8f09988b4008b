package verbs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// folderExport is one export into a folder.
type folderExport struct {
	dir    string
	head   importer.ExportHead // one of something else removes nothing
	before map[string]string   // what the last export wrote: file → SHA-256
	now    map[string]string
	report folderReport
}

// folderReport says what an export into a folder did.
type folderReport struct {
	Namespace string   `json:"namespace"`
	Folder    string   `json:"folder"`
	Records   int      `json:"records"`
	Written   int      `json:"written"`
	Unchanged int      `json:"unchanged"`
	Removed   int      `json:"removed"`
	Edited    []string `json:"edited,omitempty"` // left as they are: they were changed since the last export
	Kept      int      `json:"kept,omitempty"`   // of memories that this export leaves out, but the last one did not
}

func exportFolder(a *app, cmd *cobra.Command, c *client.Client, ns string, opts client.ListOptions, dir string) error {
	as, err := a.agent()
	if err != nil {
		return err
	}
	e := &folderExport{dir: dir, head: importer.ExportHead{Version: 1, Namespace: ns, As: as, Filter: opts.Filter}, now: map[string]string{}, report: folderReport{Namespace: ns, Folder: dir}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return memory.Errorf(memory.CodeInvalid, "make the folder: %w", err)
	}
	same, err := e.read()
	if err != nil {
		return err
	}
	if e.report.Records, err = export(a, cmd, c, ns, opts, e.write); err != nil {
		// What was written is known to the next export.
		maps.Copy(e.before, e.now)
		e.now = e.before
		return errors.Join(err, e.save())
	}
	if err := e.sweep(same); err != nil {
		return err
	}
	if err := e.save(); err != nil {
		return err
	}
	r := e.report
	if err := a.emit(r, nil, func() {
		for _, name := range r.Edited {
			a.printf("%s: left as it is, it was changed since the last export\n", filepath.Join(dir, filepath.FromSlash(name)))
		}
		a.printf("%s: %s in %s: %d written, %d unchanged, %d removed\n", ns, count(r.Records, "memory", "memories"), dir, r.Written, r.Unchanged, r.Removed)
		if r.Kept > 0 {
			a.printf("%s of an export of something else left there\n", count(r.Kept, "file", "files"))
		}
		a.next("memctl import -n %s %s", ns, shellWord(dir))
	}); err != nil {
		return err
	}
	if len(r.Edited) > 0 {
		return memory.Errorf(memory.CodeConflict, "%s changed since the last export, and left", count(len(r.Edited), "file was", "files were")).
			WithHint("import the folder first, which revises the memories, or delete the files")
	}
	return nil
}

// read reads what the last export wrote; same says that it held the same.
func (e *folderExport) read() (same bool, err error) {
	e.before = map[string]string{}
	head, files, err := importer.ReadManifest(e.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if head.Namespace != e.head.Namespace {
		return false, memory.Errorf(memory.CodeInvalid, "%s holds an export of namespace %s", e.dir, head.Namespace).WithHint("export into another folder")
	}
	e.before = files
	was, _ := json.Marshal(head) // both are plain data
	now, _ := json.Marshal(e.head)
	return bytes.Equal(was, now), nil
}

func (e *folderExport) path(name string) string {
	return filepath.Join(e.dir, filepath.FromSlash(name))
}

// sum is the SHA-256 of a file as it is now, "" if there is none, and what it says.
// A month that is a link is refused, since what is written and removed there lies outside.
func (e *folderExport) sum(name string) (sum string, text []byte, err error) {
	month := filepath.Dir(e.path(name))
	if info, err := os.Lstat(month); err == nil && !info.IsDir() {
		return "", nil, memory.Errorf(memory.CodeInvalid, "%s is a link, which is not followed, or no folder", month).WithHint("remove it, or export into another folder")
	}
	b, err := os.ReadFile(e.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	return importer.SumOf(b), b, nil
}

// write brings the file of a record up to date.
func (e *folderExport) write(rec memory.Record) error {
	id, err := ulid.Parse(rec.RecordID)
	if err != nil {
		return memory.Errorf(memory.CodeInternal, "record id %q: %w", rec.RecordID, err)
	}
	name := ulid.Time(id.Time()).UTC().Format("2006-01") + "/" + rec.RecordID + ".md"
	line := importer.ExportOf(rec)
	text, err := importer.FormatExported(line)
	if err != nil {
		return err
	}
	want := importer.SumOf(text)
	is, now, err := e.sum(name)
	if err != nil {
		return err
	}
	switch {
	case is == want:
		e.report.Unchanged++
	case is != "" && is != e.before[name] && !importer.SaysExported(now, line):
		e.report.Edited = append(e.report.Edited, name)
		want = e.before[name]
		if want == "" {
			return nil
		}
	default:
		if err := os.MkdirAll(filepath.Dir(e.path(name)), 0o700); err != nil {
			return memory.Errorf(memory.CodeInvalid, "%w", err)
		}
		if err := replaceFile(e.path(name), 0o600, func(f *os.File) error {
			_, err := f.Write(text)
			return err
		}); err != nil {
			return err
		}
		e.report.Written++
	}
	e.now[name] = want
	return nil
}

// sweep removes the files of memories that are no longer there, unless they were
// edited, or this export holds something else than the last one.
func (e *folderExport) sweep(same bool) error {
	for _, name := range slices.Sorted(maps.Keys(e.before)) {
		if _, still := e.now[name]; still {
			continue
		}
		is, _, err := e.sum(name)
		switch {
		case err != nil:
			return err
		case is == "":
		case !same:
			e.report.Kept++
			e.now[name] = e.before[name]
		case is != e.before[name]:
			if !slices.Contains(e.report.Edited, name) {
				e.report.Edited = append(e.report.Edited, name)
			}
			e.now[name] = e.before[name]
		default:
			if err := os.Remove(e.path(name)); err != nil {
				return memory.Errorf(memory.CodeInvalid, "%w", err)
			}
			e.report.Removed++
		}
	}
	return nil
}

// save writes the manifest.
func (e *folderExport) save() error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	if err := enc.Encode(e.head); err != nil {
		return fmt.Errorf("encode %s: %w", importer.ExportManifest, err)
	}
	for _, name := range slices.Sorted(maps.Keys(e.now)) {
		if err := enc.Encode(importer.ManifestFile{File: name, SHA256: e.now[name]}); err != nil {
			return fmt.Errorf("encode %s: %w", importer.ExportManifest, err)
		}
	}
	return replaceFile(filepath.Join(e.dir, importer.ExportManifest), 0o600, func(f *os.File) error {
		_, err := f.Write(b.Bytes())
		return err
	})
}
