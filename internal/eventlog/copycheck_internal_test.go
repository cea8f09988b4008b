package eventlog

import (
	"bytes"
	"encoding/binary"
	"os"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readings is a file system on which a file has other bytes, or an error, at each reading.
type readings struct {
	vfs.FS
	path string
	give []func() ([]byte, error) // the last one stays
}

func (r *readings) Open(path string, opts ...vfs.OpenOption) (vfs.File, error) {
	if path != r.path {
		return r.FS.Open(path, opts...)
	}
	b, err := r.give[0]()
	if len(r.give) > 1 {
		r.give = r.give[1:]
	}
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	mem := vfs.NewMem()
	f, err := mem.Create("f", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(bytes.Clone(b)) // which it may change
	}
	if err != nil {
		return nil, err
	}
	return mem.Open("f")
}

// aBlock is a block of as many records.
func aBlock(t *testing.T, name string, n int) []byte {
	t.Helper()
	sum, err := blockHash(name)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for seq := 1; seq <= n; seq++ {
		record := make([]byte, headLength+100+recordHash)
		binary.LittleEndian.PutUint32(record, uint32(len(record)))
		binary.LittleEndian.PutUint64(record[4:], uint64(seq))
		copy(record[headLength:], bytes.Repeat([]byte{byte(seq)}, 100))
		sum.Reset()
		_, _ = sum.Write(record[4:20])
		_, _ = sum.Write(record[headLength : len(record)-recordHash])
		copy(record[len(record)-recordHash:], sum.Sum(nil))
		b = append(b, record...)
	}
	return b
}

// A block that was read while its server wrote it does not check, and is no damage: only what
// stays as it is. What stays so beside records that are appended is.
func TestBlockThatChangesIsNotDamaged(t *testing.T) {
	const dir, name = "nats", "mneme-0"
	whole := aBlock(t, name+"-1", 20)
	bytesOf := func(b []byte) func() ([]byte, error) { return func() ([]byte, error) { return b, nil } }
	flipped := func(at, length int) func() ([]byte, error) {
		b := bytes.Clone(whole[:length])
		b[at] ^= 4
		return bytesOf(b)
	}
	fails := func(err error) func() ([]byte, error) { return func() ([]byte, error) { return nil, err } }
	changing := make([]func() ([]byte, error), 40)
	for i := range changing {
		changing[i] = flipped(300+i, len(whole))
	}
	record := len(whole) / 20
	for what, tt := range map[string]struct {
		give    []func() ([]byte, error)
		damaged bool
	}{
		"sound":                                 {give: []func() ([]byte, error){bytesOf(whole)}},
		"read while it was cut and written":     {give: []func() ([]byte, error){flipped(300, len(whole)), bytesOf(whole)}},
		"the same twice, and then whole":        {give: []func() ([]byte, error){flipped(300, len(whole)), flipped(300, len(whole)), flipped(300, len(whole)), bytesOf(whole)}},
		"another one each time":                 {give: changing},
		"gone when it is read again":            {give: []func() ([]byte, error){flipped(300, len(whole)), fails(os.ErrNotExist)}},
		"its end is half written, and stays so": {give: []func() ([]byte, error){bytesOf(whole[:len(whole)-10])}, damaged: true}, // a block follows
		"rotten":                                {give: []func() ([]byte, error){flipped(300, len(whole))}, damaged: true},
		"rotten, and it grows": {give: []func() ([]byte, error){flipped(300, 10*record), flipped(300, 12*record), flipped(300, 15*record),
			flipped(300, 19*record+7), flipped(300, len(whole))}, damaged: true},
		"the disk does not read it":      {give: []func() ([]byte, error){fails(syscall.EIO)}, damaged: true},
		"the disk does not read it once": {give: []func() ([]byte, error){fails(syscall.EIO), bytesOf(whole)}},
	} {
		mem := vfs.NewMem()
		msgs := mem.PathJoin(dir, "jetstream", "NODE", "streams", name, "msgs")
		if err := mem.MkdirAll(msgs, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, block := range []string{"1.blk", "2.blk"} { // the second one is empty
			f, err := mem.Create(mem.PathJoin(msgs, block), vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		c, err := BeginCopyCheck(&readings{FS: mem, path: mem.PathJoin(msgs, "1.blk"), give: tt.give}, dir)
		if err != nil {
			t.Fatal(err)
		}
		c.pause = 0
		var damage *CopyDamaged
		for more := true; more && damage == nil && err == nil; {
			more, _, damage, err = c.Step(t.Context())
		}
		if err != nil || (damage != nil) != tt.damaged {
			t.Errorf("%s: %v, %v", what, damage, err)
		}
		if damage != nil && !damage.Still() {
			t.Errorf("%s: it is over: %v", what, damage)
		}
	}
}
