package main

import (
	"context"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/backup"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// fakeSource is a node whose log has two messages more each time it is asked.
type fakeSource struct{}

var fakeCluster = events.ID{15: 1}

func (fakeSource) Log(_ context.Context, w io.Writer, after string) (memory.BackupReport, error) {
	marks, err := backup.ParseMarks(after)
	if err != nil {
		return memory.BackupReport{}, err
	}
	var at backup.Mark
	if marks != nil {
		at = marks[0]
	}
	s, err := backup.BeginSection(w, fakeCluster, 1, at)
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

func (fakeSource) Keys(_ context.Context, w io.Writer, master bool) error {
	k, err := keyring.Open(keyring.Options{Dir: "node", FS: vfs.NewMem(), AllowCreate: true, AllowNewStorage: true})
	if err != nil {
		return err
	}
	defer k.Close()
	if !master {
		return k.Export(w)
	}
	return k.ExportWithMaster(w)
}

func (fakeSource) Destroyed(context.Context) (memory.DestroyedKeys, error) {
	return memory.DestroyedKeys{ClusterID: fakeCluster.String(), Keys: []string{"000102030405060708090a0b0c0d0e0f"}, Namespaces: []string{}}, nil
}
