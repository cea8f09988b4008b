package eventlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/events"
	"mneme/internal/storage"
)

func TestParseAck(t *testing.T) {
	for _, c := range []struct {
		ack  string
		last uint64
		want error
	}{
		{`{"stream":"mneme-0","seq":8}`, 7, nil},
		{`{"stream":"mneme-0","seq":1}`, 0, nil},
		{`{"stream":"mneme-0","seq":9}`, 7, ErrUnknown},
		{`{"stream":"mneme-0","seq":0}`, 1<<64 - 1, ErrUnknown},
		{`{"stream":"mneme-0","seq":8,"duplicate":true}`, 7, ErrUnknown},
		{`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"seq":0}`, 7, ErrRefused},
		{`{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}`, 7, ErrRefused},
		{`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`, 7, ErrNoSpace},
		{`{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}`, 7, ErrNoSpace},
		{`{"error":{"code":503,"err_code":10077,"description":"message size exceeds maximum allowed"}}`, 7, ErrRefused},
		{`{"error":{"code":503,"err_code":10077,"description":"input/output error"}}`, 7, ErrUnknown},
		{`{"error":{"code":503,"err_code":10023,"description":"insufficient resources"}}`, 7, ErrNoSpace},
		{`{"error":{"code":503,"err_code":1,"description":"new"}}`, 7, ErrUnknown},
		{`{"error":{}}`, 7, ErrUnknown},
		{``, 7, ErrUnknown},
		{`[]`, 7, ErrUnknown},
	} {
		if err := parseAck([]byte(c.ack), c.last); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s behind %d: %v, want %v", c.ack, c.last, err, c.want)
		}
	}
}

func FuzzParseAck(f *testing.F) {
	f.Add([]byte(`{"stream":"mneme-0","seq":8}`), uint64(7))
	f.Add([]byte(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"seq":8}`), uint64(7))
	f.Fuzz(func(t *testing.T, b []byte, last uint64) {
		err := parseAck(b, last)
		if err == nil && last == 1<<64-1 {
			t.Error("there is no sequence behind the last one")
		}
		if err != nil && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrNoSpace) {
			t.Errorf("untyped: %v", err)
		}
	})
}

func FuzzParseDirect(f *testing.F) {
	f.Add("", "12", "2026-11-20T10:00:00.123456789Z", []byte("x"))
	f.Add("204", "", "", []byte(nil))
	f.Add("408", "", "", []byte(nil))
	f.Add("", "-1", "yesterday", []byte(nil))
	f.Fuzz(func(t *testing.T, status, seq, at string, data []byte) {
		h := nats.Header{"Nats-Sequence": {seq}, "Nats-Time-Stamp": {at}}
		if status != "" {
			h["Status"] = []string{status}
		}
		m, end, err := parseDirect(&nats.Msg{Header: h, Data: data})
		if err == nil && !end && (m.Seq == 0 || !bytes.Equal(m.Data, data)) {
			t.Errorf("%+v", m)
		}
	})
}

func FuzzParseSystemVarz(f *testing.F) {
	f.Add([]byte(`{"server":{"name":"a"},"data":{"server_name":"a","jetstream":{"config":{"sync_always":true}}}}`))
	f.Add([]byte(`{"error":{"code":404}}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		v, err := parseSystemVarz(b)
		if err == nil {
			p := newProof(nil)
			p.conn = connectedTo{"a", "1"}
			_ = p.heard([]varz{v}, time.Now(), 0)
		}
	})
}

// record is a record of a block as nats-server writes it, without checksum.
func record(seq uint64, payload int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(headLength+9+payload+8))
	b = binary.LittleEndian.AppendUint64(b, seq)
	b = binary.LittleEndian.AppendUint64(b, 1)
	b = binary.LittleEndian.AppendUint16(b, 9)
	b = append(b, "mem.log.0"...)
	return append(b, make([]byte, payload+8)...)
}

func TestWalkBlock(t *testing.T) {
	sound := append(append(record(1, 10), record(2, 70_000)...), record(3, 0)...)
	long := record(5, 10)
	long[3] = 0x7f
	headers := record(4, 0)
	binary.LittleEndian.PutUint32(headers, hasHeaders|(recordMinimum+9+3))
	for _, c := range []struct {
		name  string
		block []byte
		bad   string
	}{
		{"empty", nil, ""},
		{"sound", sound, ""},
		{"cut in a header", sound[:len(sound)-30], ""},
		{"cut in a message", sound[:1000], ""},
		{"hole", append(bytes.Clone(sound), record(1000, 0)...), ""},
		{"too large a hole", append(bytes.Clone(sound), record(1<<30, 0)...), "sequence 1073741824 behind 3"},
		{"absurd first", record(1<<55, 0), "sequence"},
		{"tombstone", append(bytes.Clone(sound), record(seqTombstone|1<<50, 0)...), ""},
		{"erased", append(bytes.Clone(sound), record(seqErased|4, 0)...), ""},
		{"too long", append(bytes.Clone(sound), long...), "length"},
		{"zeros", append(bytes.Clone(sound), make([]byte, 100)...), "length 0"},
		{"no room for headers", append(bytes.Clone(sound), headers...), "length"},
	} {
		found, err := walkBlock(bufio.NewReader(bytes.NewReader(c.block)))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.bad == "" && len(found) > 0, c.bad != "" && len(found) != 1:
			t.Errorf("%s: %+v", c.name, found)
		case c.bad != "" && (found[0].fix != nil || !strings.Contains(found[0].detail, c.bad)):
			t.Errorf("%s: %+v", c.name, found[0])
		}
	}
}

// withHeaders is a record with headers of a claimed length.
func withHeaders(seq uint64, headers string, claimed uint32, body string) []byte {
	b := record(seq, 4+len(headers)+len(body))
	binary.LittleEndian.PutUint32(b, hasHeaders|uint32(len(b)))
	rest := append(binary.LittleEndian.AppendUint32(nil, claimed), headers+body...)
	copy(b[headLength+9:], rest)
	return b
}

// TestWrongHeaderLengthIsMended: no checksum covers the length of a record's
// headers; with a wrong one the server handed out another message.
func TestWrongHeaderLengthIsMended(t *testing.T) {
	const headers = "NATS/1.0\r\nNats-Expected-Last-Sequence: 7\r\n\r\n"
	good := uint32(len(headers))
	sound := withHeaders(2, headers, good, "two\r\n\r\nlines")
	for _, c := range []struct {
		name  string
		block []byte
		fixes int
	}{
		{"sound", append(withHeaders(1, headers, good, "one"), sound...), 0},
		{"too short", append(withHeaders(1, headers, good-1, "one"), sound...), 1},
		{"none", append(withHeaders(1, headers, 0, "one"), sound...), 1},
		{"beyond the record", append(withHeaders(1, headers, 1<<31, "one"), sound...), 1},
		{"into the body", append(bytes.Clone(sound), withHeaders(3, headers, good+9, "two\r\n\r\nlines")...), 1},
		{"two of them", append(withHeaders(1, headers, good^1, "one"), withHeaders(2, headers, good^2, "two")...), 2},
		{"no headers where they should be", withHeaders(1, "NATS/1.1"+headers[8:], good, "one"), 0},
		{"headers that do not end", withHeaders(1, headers[:20], good, "one"), 0},
		{"cut inside", withHeaders(1, headers, good, "one")[:60], 0},
		{"cut in the length", withHeaders(1, headers, good, "one")[:headLength+9+2], 0},
	} {
		found, err := walkBlock(bufio.NewReader(bytes.NewReader(c.block)))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != c.fixes {
			t.Errorf("%s: %+v", c.name, found)
		}
		for _, f := range found {
			if f.fix == nil || binary.LittleEndian.Uint32(f.fix) != good {
				t.Errorf("%s: mends with %x, want %d", c.name, f.fix, good)
			}
			copy(c.block[f.offset:], f.fix)
		}
		if again, err := walkBlock(bufio.NewReader(bytes.NewReader(c.block))); err != nil || len(again) > 0 {
			t.Errorf("%s: after mending: %+v %v", c.name, again, err)
		}
	}
}

func FuzzWalkBlock(f *testing.F) {
	f.Add(append(record(1, 10), record(2, 20)...))
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := walkBlock(bufio.NewReader(bytes.NewReader(b))); err != nil {
			t.Error(err)
		}
	})
}

// TestPreflightKeepsCopies: each damaged block is kept, under a name of its own,
// and the other streams' indexes stay.
func TestPreflightKeepsCopies(t *testing.T) {
	dir := t.TempDir()
	write := func(stream, name string, b []byte) string {
		path := filepath.Join(dir, "jetstream", "NODE", "streams", stream, "msgs", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := append(record(1, 5), make([]byte, 50)...)
	write("mneme-0", "1.blk", bad)
	index0 := write("mneme-0", "index.db", []byte("i"))
	write("mneme-1", "1.blk", record(1, 5))
	index1 := write("mneme-1", "index.db", []byte("i"))
	for round, name := range []string{"mneme-0-1.blk", "mneme-0-1.blk.1"} {
		found, err := preflight(vfs.Default, dir)
		if err != nil || len(found) != 1 || found[0].Stream != "mneme-0" || filepath.Base(found[0].Kept) != name {
			t.Fatalf("round %d: %+v %v", round, found, err)
		}
		if kept, err := os.ReadFile(found[0].Kept); err != nil || !bytes.Equal(kept, bad) {
			t.Errorf("round %d: the copy differs: %v", round, err)
		}
	}
	if _, err := os.Stat(index0); !errors.Is(err, os.ErrNotExist) {
		t.Error("the index of the damaged stream is still there")
	}
	if _, err := os.Stat(index1); err != nil {
		t.Error("the index of the sound stream is gone")
	}
}

func TestServerLogFaults(t *testing.T) {
	l := newServerLog(nil)
	l.Noticef("notice %d", 1)
	l.Debugf("debug")
	l.Tracef("trace")
	l.Errorf("something else")
	for _, about := range []string{"cid", "rid"} { // a certificate, or a user, may be called anything
		l.Errorf("10.0.0.9:5 - %s:7 - TLS handshake error: unknown authority (CN=JetStream out of space, no space left on device)", about)
	}
	if l.fault() != nil {
		t.Error(l.fault())
	}
	l.Errorf("JetStream failed to store a msg on stream '%s': %v", "mneme-0", "write: no space left on device")
	l.Errorf("JetStream failed to store a msg on stream 'mneme-0': other")
	if !errors.Is(l.fault(), ErrNoSpace) {
		t.Error(l.fault())
	}
	if err := writeFault("JetStream failed to store a msg on stream 'x': input/output error"); err == nil || errors.Is(err, ErrNoSpace) {
		t.Error(err)
	}
	j := &JetStream{nc: &nats.Conn{}, cfg: StreamConfig{Fault: l.fault}}
	j.sending = make(chan struct{}, 1)
	if err := j.Append(t.Context(), nil, 0); !errors.Is(err, ErrNoSpace) || !errors.Is(err, ErrStopped) || errors.Is(err, ErrUnknown) {
		t.Errorf("append on a full disk: %v", err)
	}
	err := j.publishError(nats.ErrTimeout)
	if !errors.Is(err, ErrUnknown) || !errors.Is(err, ErrNoSpace) || !errors.Is(err, nats.ErrTimeout) {
		t.Error(err)
	}
	for _, err := range []error{nats.ErrNoResponders, nats.ErrMaxPayload, nats.ErrReconnectBufExceeded} {
		if got := j.publishError(err); !errors.Is(got, ErrRefused) || errors.Is(got, ErrUnknown) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestFatalErrors(t *testing.T) {
	if err := (&ServerOptions{}).fatal("Could not write pidfile"); err == nil {
		t.Error("no error")
	}
	for msg, want := range map[string]error{
		`Error listening on port: 1.2.3.4:1, "listen tcp: bind: address already in use"`: ErrAddressTaken,
		"Can't start JetStream: could not create storage directory - permission denied":  os.ErrPermission,
		"Can't start JetStream: corrupt":                                                 ErrStoreDamaged,
	} {
		if err := (&ServerOptions{Addr: "1.2.3.4:1", Dir: "dir"}).fatal(msg); !errors.Is(err, want) || err.Error() == "" {
			t.Errorf("%s: %v", msg, err)
		}
	}
}

// TestKeptCopyOutlivesAPowerLoss: the server cuts the original at once, so a copy
// that was not synced would have been the end of both.
func TestKeptCopyOutlivesAPowerLoss(t *testing.T) {
	fs := vfs.NewCrashableMem()
	msgs := "/nats/jetstream/$G/streams/mneme-0/msgs"
	bad := append(record(1, 5000), make([]byte, 50)...)
	if err := fs.MkdirAll(msgs, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(msgs+"/1.blk", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Clone(bad))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for dir := msgs; dir != "/"; dir = filepath.Dir(dir) {
		if err := storage.SyncDir(fs, dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := storage.SyncDir(fs, "/"); err != nil {
		t.Fatal(err)
	}
	found, err := preflight(fs, "/nats")
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	kept, err := after.Open(found[0].Kept)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(kept)
	if err = errors.Join(err, kept.Close()); err != nil || !bytes.Equal(got, bad) {
		t.Errorf("%d of %d bytes are left: %v", len(got), len(bad), err)
	}
}

// TestStreamWhoseMakingWasKilled: a kill between meta.inf and meta.sum left a stream
// with which the server did not start. It holds no message, so it is made again; one
// that holds messages is left alone.
func TestStreamWhoseMakingWasKilled(t *testing.T) {
	for _, test := range []struct {
		files []string
		empty string
		stays bool
	}{
		{[]string{"meta.inf"}, "", false},
		{[]string{"meta.inf"}, "meta.sum", false},
		{[]string{"meta.inf", "msgs/index.db"}, "", false},
		{[]string{"meta.inf", "meta.sum"}, "", true},
		{[]string{"meta.inf", "msgs/1.blk"}, "", true},
		{[]string{"meta.inf", "msgs/1.blk"}, "meta.sum", true},
	} {
		fs, stream := vfs.NewMem(), "d/jetstream/NODE/streams/mneme-0"
		err := fs.MkdirAll(stream+"/msgs", 0o700)
		for _, name := range test.files {
			f, cerr := fs.Create(stream+"/"+name, vfs.WriteCategoryUnspecified)
			if err = errors.Join(err, cerr); err == nil {
				_, err = f.Write([]byte("written"))
				err = errors.Join(err, f.Close())
			}
		}
		if test.empty != "" {
			f, cerr := fs.Create(stream+"/"+test.empty, vfs.WriteCategoryUnspecified)
			err = errors.Join(err, cerr, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := preflight(fs, "d"); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Stat(stream + "/meta.inf"); (err == nil) != test.stays {
			t.Errorf("%v: %v", test.files, err)
		}
	}
}

// TestStreamWhoseRemovalWasKilled: a kill while the server removed a stream that a
// repair had replaced left blocks without a description, with which the node did not
// start. A stream that nothing has replaced stays.
func TestStreamWhoseRemovalWasKilled(t *testing.T) {
	for _, test := range []struct {
		files []string
		begun string // a block that holds a frame of epoch 1
		stays bool
	}{
		{[]string{"mneme-0/meta.sum", "mneme-0/msgs/1.blk", "mneme-0-1/meta.inf", "mneme-0-1/meta.sum"}, "mneme-0-1/msgs/1.blk", false},
		{[]string{"mneme-0/meta.sum", "mneme-0/msgs/1.blk", "mneme-0-1/meta.inf", "mneme-0-1/meta.sum"}, "", true},
		{[]string{"mneme-0/meta.sum", "mneme-0/msgs/1.blk", "mneme-0-12/meta.inf", "mneme-0-12/meta.sum"}, "mneme-0-12/msgs/1.blk", true},
		{[]string{"mneme-0/meta.sum", "mneme-0/msgs/1.blk"}, "", true},
		{[]string{"mneme-0/meta.sum", "mneme-0/msgs/1.blk", "mneme-1-1/meta.inf", "mneme-1-1/meta.sum"}, "mneme-1-1/msgs/1.blk", true},
		{[]string{"mneme-0/meta.sum", "mneme-0/msgs/1.blk", "mneme-0-1/meta.inf"}, "mneme-0-1/msgs/1.blk", true},
		{[]string{"mneme-0-1/meta.sum", "mneme-0-1/msgs/1.blk", "mneme-0/meta.inf", "mneme-0/meta.sum", "mneme-0/msgs/1.blk"}, "", false},
		{[]string{"mneme-0-1/meta.sum", "mneme-0/meta.inf", "mneme-0/meta.sum", "mneme-0/msgs/1.blk"}, "mneme-0-1/msgs/1.blk", true},
		{[]string{"mneme-0/meta.inf", "mneme-0/meta.sum", "mneme-0/msgs/1.blk", "mneme-0-1/meta.inf", "mneme-0-1/meta.sum"}, "mneme-0-1/msgs/1.blk", true},
	} {
		fs, streams := vfs.NewMem(), "d/jetstream/NODE/streams/"
		write := func(name string, b []byte) {
			err := fs.MkdirAll(fs.PathDir(streams+name), 0o700)
			f, cerr := fs.Create(streams+name, vfs.WriteCategoryUnspecified)
			if err = errors.Join(err, cerr); err == nil {
				_, err = f.Write(b)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		block := func(epoch uint32) []byte {
			frame := (&events.Frame{Epoch: epoch, Seq: 1, Events: [][]byte{[]byte("begun")}}).Encode()
			b := record(1, len(frame))
			copy(b[headLength+9:], frame)
			return b
		}
		for _, name := range test.files {
			write(name, block(0)) // a block that holds nothing is of a stream that was never made
		}
		if test.begun != "" {
			write(test.begun, block(1))
		}
		if _, err := preflight(fs, "d"); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Stat(fs.PathDir(streams + test.files[0])); (err == nil) != test.stays {
			t.Errorf("%v, begun %q: %v", test.files, test.begun, err)
		}
	}
}

// A server without room for a new stream said so in a form that nobody understood.
func TestNoRoomForAStream(t *testing.T) {
	for _, c := range []struct {
		api  jetstream.APIError
		full bool
	}{
		{jetstream.APIError{Code: 500, ErrorCode: 10047, Description: "insufficient storage resources available"}, true},
		{jetstream.APIError{Code: 400, ErrorCode: 10002, Description: "resource limits exceeded for account"}, true},
		{jetstream.APIError{Code: 500, ErrorCode: 10049, Description: "mkdir /data/streams/mneme-0-1: no space left on device"}, true},
		{jetstream.APIError{Code: 400, ErrorCode: 10058, Description: "stream name already in use"}, false},
	} {
		if err := createError(&c.api); errors.Is(err, ErrNoSpace) != c.full || !strings.Contains(err.Error(), c.api.Description) {
			t.Errorf("%v", err)
		}
	}
	if err := createError(nats.ErrTimeout); err != nats.ErrTimeout {
		t.Errorf("%v", err)
	}
}
