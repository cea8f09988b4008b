package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/backup"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// fakeSource is a node whose log has two messages more each time it is asked.
type fakeSource struct {
	became bool // another cluster, which was made of this one
}

var fakeCluster = events.ID{15: 1}

func (f fakeSource) id() events.ID {
	if f.became {
		return events.ID{15: 2}
	}
	return fakeCluster
}

func (f fakeSource) Log(_ context.Context, w io.Writer, after string) (memory.BackupReport, error) {
	marks, err := backup.ParseMarks(after)
	if err != nil {
		return memory.BackupReport{}, err
	}
	var at backup.Mark
	if marks != nil {
		at = marks[0]
	}
	s, err := backup.BeginSection(w, f.id(), 1, at)
	if err != nil {
		return memory.BackupReport{}, err
	}
	for range 2 {
		at.Seq++
		f := events.Frame{Seq: at.Seq, Events: [][]byte{fmt.Append(nil, "event ", at.Seq)}}
		if err := s.Message(at.Seq, f.Encode()); err != nil {
			return memory.BackupReport{}, err
		}
	}
	_, err = s.Close(0, 1)
	return memory.BackupReport{Position: events.Position{Seq: at.Seq}.String(), Frames: 2, Events: 2, StateHash: "abc"}, err
}

// fakeKeys are the same for every backup.
var fakeKeys = sync.OnceValues(func() (*keyring.Keyring, error) {
	return keyring.Open(keyring.Options{Dir: "node", FS: vfs.NewMem(), AllowCreate: true, AllowNewStorage: true})
})

func (fakeSource) Keys(_ context.Context, w io.Writer, master bool) error {
	k, err := fakeKeys()
	if err != nil {
		return err
	}
	if !master {
		return k.Export(w)
	}
	return k.ExportWithMaster(w)
}

func (f fakeSource) Destroyed(context.Context) (memory.DestroyedKeys, error) {
	out := memory.DestroyedKeys{ClusterID: f.id().String(), Keys: []string{"000102030405060708090a0b0c0d0e0f"}, Namespaces: []string{}}
	if f.became {
		out.Former = []string{fakeCluster.String()}
	}
	return out, nil
}

// The keys do not lie beside the log because a link leads there.
func TestPlacesThatAreOneBehindALink(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"place", "safe"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"same": "place", "other": "safe", "up": "."} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for keys, one := range map[string]bool{"same": true, "same/keys/not/there": true, "up/place": true, "up": true, "other": false, "other/keys": false, "place2": false} {
		p := placeFlags{log: filepath.Join(dir, "place"), keys: filepath.Join(dir, keys)}
		if _, _, err := p.open(&app{}); (memory.CodeOf(err) == memory.CodeInvalid) != one || !one && err != nil {
			t.Errorf("%s: %v", keys, err)
		}
	}
}
