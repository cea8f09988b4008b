package verbs

import (
	"context"
	"fmt"
	"io"
	"sync"

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
