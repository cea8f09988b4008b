package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

func newRejections(t *testing.T) (path string, open func() *Rejections, now *time.Time) {
	t.Helper()
	dir := t.TempDir()
	keys, err := keyring.Open(keyring.Options{Dir: dir, AllowCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	path = filepath.Join(dir, "logs", "rejected")
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return path, func() *Rejections {
		r, err := OpenRejections(nil, path, keys, noNamespace, func() time.Time { return clock })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}, &clock
}

func TestRejections(t *testing.T) {
	path, open, now := newRejections(t)
	r := open()
	r.Reject(memory.Rejected{Namespace: "team-a", Agent: "agent-1", Code: memory.CodeInvalid, Reason: "text is missing", Body: strings.Repeat("secretbody", 1000), Size: 10_000, Via: "rest"})
	*now = now.Add(time.Minute)
	r.Reject(memory.Rejected{Namespace: "team-b", Code: memory.CodeForbidden, Reason: "not allowed", Body: "well-formed secret"})
	list := r.List(10)
	if len(list.Rejected) != 2 || list.Rejected[0].Code != memory.CodeForbidden {
		t.Fatalf("%+v", list)
	}
	if list.Rejected[0].Body != "" {
		t.Error("the body of a well-formed message is kept")
	}
	if n := len(list.Rejected[1].Body); n != rejectedBody {
		t.Errorf("%d bytes of a malformed body are kept", n)
	}
	if list.Counts["invalid"] != 1 || list.Counts["forbidden"] != 1 {
		t.Errorf("counts %v", list.Counts)
	}
	if got := r.List(1); len(got.Rejected) != 1 {
		t.Errorf("limit 1 gives %d", len(got.Rejected))
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, plain := range []string{"secret", "team-a", "agent-1", "missing", "invalid", "c2VjcmV0"} {
		if bytes.Contains(raw, []byte(plain)) {
			t.Errorf("the file holds %q in the clear", plain)
		}
	}
	again := open().List(10)
	if fmt.Sprint(again.Rejected) != fmt.Sprint(list.Rejected) || len(again.Counts) != 0 {
		t.Errorf("opened again: %+v", again)
	}
	*now = now.Add(7*24*time.Hour - time.Second)
	if got := r.List(10); len(got.Rejected) != 1 {
		t.Errorf("after seven days there are %d", len(got.Rejected))
	}
	r.Reject(memory.Rejected{Code: memory.CodeQuota})
	if raw, err = os.ReadFile(path); err != nil || bytes.Count(raw, []byte("\n")) != 2 {
		t.Errorf("the file keeps what is over: %d lines, %v", bytes.Count(raw, []byte("\n")), err)
	}
}

func TestRejectionsFileIsBounded(t *testing.T) {
	path, open, now := newRejections(t)
	r := open()
	for i := range 2*rejectedKept + 10 {
		r.Reject(memory.Rejected{Code: memory.CodeInvalid, Reason: fmt.Sprint(i)})
		*now = now.Add(time.Second / rejectedRate)
	}
	lines := func() int {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(raw, []byte("\n"))
	}
	if n := lines(); n > 2*rejectedKept {
		t.Errorf("%d lines", n)
	}
	if got := r.List(5000); len(got.Rejected) != rejectedKept || got.Rejected[0].Reason != fmt.Sprint(2*rejectedKept+9) || got.Counts["invalid"] != 2*rejectedKept+10 {
		t.Errorf("%d in the ring, newest %s", len(got.Rejected), got.Rejected[0].Reason)
	}
	// The file grew with every start of the node.
	for range 3 {
		r = open()
		r.Reject(memory.Rejected{Code: memory.CodeInvalid})
		if n := lines(); n != rejectedKept {
			t.Errorf("%d lines after a start", n)
		}
	}
}

func TestRejectionsSurviveDamage(t *testing.T) {
	path, open, _ := newRejections(t)
	r := open()
	for i := range 3 {
		r.Reject(memory.Rejected{Code: memory.CodeInvalid, Reason: fmt.Sprint(i) + strings.Repeat("x", 100_000), Body: "\x00\xff\u2028"})
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[10] ^= 1
	raw = append(raw, "torn"...)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	r = open()
	if n := len(r.List(10).Rejected); n != 2 {
		t.Fatalf("%d of 2 whole lines are read", n)
	}
	r.Reject(memory.Rejected{Code: memory.CodeInvalid, Reason: "after"})
	if list := open().List(10).Rejected; len(list) != 3 || list[0].Reason != "after" {
		t.Errorf("a torn line took the next one with it: %d", len(list))
	}
	if _, err := OpenRejections(nil, filepath.Dir(path), nil, noNamespace, time.Now); err == nil {
		t.Log("a folder opens as an empty list")
	}
}

// The file was written anew without a sync, so that a power loss left an empty one:
// the whole list was gone.
func TestRejectionsWrittenAnewSurviveAPowerLoss(t *testing.T) {
	fs := vfs.NewCrashableMem()
	keys, err := keyring.Open(keyring.Options{Dir: t.TempDir(), AllowCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	open := func(fs vfs.FS) *Rejections {
		r, err := OpenRejections(fs, "logs/rejected", keys, noNamespace, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open(fs)
	for i := range 5 { // the first writes the file, the others append
		r.Reject(memory.Rejected{Code: memory.CodeInvalid, Reason: fmt.Sprint(i)})
	}
	if n := len(open(fs).List(10).Rejected); n != 5 {
		t.Fatalf("%d of 5 were appended", n)
	}
	r = open(fs)
	r.Reject(memory.Rejected{Code: memory.CodeInvalid, Reason: "writes the file anew"})
	if n := len(open(fs.CrashClone(vfs.CrashCloneCfg{})).List(10).Rejected); n != 6 {
		t.Errorf("%d of 6 after a power loss", n)
	}
}

func noNamespace(string) (events.ID, bool) { return events.ID{}, false }

// newTeams gives a ring over a keyring with the namespaces team and other, and keys
// of the given subjects in team.
func newTeams(t *testing.T, subjects ...string) (teams, func() *Rejections) {
	t.Helper()
	dir := t.TempDir()
	keys, err := keyring.Open(keyring.Options{Dir: dir, AllowCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	x := teams{keys: keys, path: filepath.Join(dir, "logs", "rejected"), ns: map[string]events.ID{"team": {1}, "other": {2}}}
	for _, id := range x.ns {
		if err := keys.CreateNamespace(id); err != nil {
			t.Fatal(err)
		}
	}
	if x.subjects, _, err = keys.EnsureSubjects(x.ns["team"], subjects); err != nil {
		t.Fatal(err)
	}
	find := func(name string) (events.ID, bool) { id, ok := x.ns[name]; return id, ok }
	return x, func() *Rejections {
		r, err := OpenRejections(nil, x.path, keys, find, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

type teams struct {
	keys     *keyring.Keyring
	path     string
	ns       map[string]events.ID
	subjects []keyring.KeyID
}

// Rejected bodies were sealed under the node's key, which cannot be destroyed: an
// erased subject's words stayed readable for seven days.
func TestRejectedBodyDiesWithTheKeyItWasMeantFor(t *testing.T) {
	x, open := newTeams(t, "ada")
	r := open()
	for _, m := range []memory.Rejected{
		{Namespace: "team", Reason: "ada", Body: `{"subject": "ada", "text": "tea", "kind":`},
		{Namespace: "team", Reason: "unknown", Body: `{"subject":"bob"}`},
		{Namespace: "other", Reason: "other"},
		{Namespace: "none", Reason: "none", Body: `{"subject":"ada"}`},
	} {
		m.Code = memory.CodeInvalid
		r.Reject(m)
	}
	check := func(step string, want ...string) {
		t.Helper()
		for _, r := range []*Rejections{r, open()} {
			var got []string
			for _, m := range r.List(10).Rejected {
				got = append(got, m.Reason)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v is listed, want %v", step, got, want)
			}
		}
	}
	check("before", "none", "other", "unknown", "ada")
	if err := x.keys.Destroy(x.subjects...); err != nil {
		t.Fatal(err)
	}
	check("subject destroyed", "none", "other", "unknown")
	if err := x.keys.DestroyNamespace(x.ns["team"]); err != nil {
		t.Fatal(err)
	}
	check("namespace destroyed", "none", "other")
	if err := r.DropErased(); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(x.path); err != nil || bytes.Count(raw, []byte("\n")) != 2 {
		t.Errorf("the file keeps dead lines: %d, %v", bytes.Count(raw, []byte("\n")), err)
	}
}

// Only the first subject that a body named in plain JSON counted: what also named
// another, in another notation or place, stayed readable when that one was erased.
func TestRejectedBodyOutlivedAnErasedSubject(t *testing.T) {
	x, open := newTeams(t, "ada", "bob")
	r := open()
	bodies := []string{
		`[{"subject":"ada","text":"x"},{"subject":"bob","txet":"SECRET"}]`,
		`{"metadata":{"subject":"ada"},"subject":"bob","txet":"SECRET"}`,
		`{"subject":"ada","subject":"bob","txet":"SECRET"}`,
		`{"subject":"\u0062ob","txet":"SECRET"}`,
		`{"\u0073ubject":"bob","txet":"SECRET"}`,
		`{"Subject":"bob","txet":"SECRET"}`,
		`{'subject': 'bob', 'text': 'SECRET'}`,
		`{subject: bob, text: SECRET}`,
		`{"\u0073ubject": "bob", "text": "SECRET`,
		`{"subject":["bob"],"text":"SECRET"}`,
		`{"subjects":["bob"],"text":"SECRET"}`,
		`{"specversion":"1.0","data":"{\"subject\":\"bob\",\"text\":\"SECRET\"}"}`,
		`{"specversion":"1.0","data_base64":"eyJzdWJqZWN0IjoiYm9iIn0=","x":"SECRET"}`,
		`{"txet":"SECRET` + strings.Repeat("x", 3000) + `","subject":"bob"}`,
		`{"txet":"SECRET` + strings.Repeat("x", rejectedScan) + `","subject":"bob"}`,
		`{"subject":"not yet known","txet":"SECRET"}`,
	}
	for i, body := range bodies {
		for _, ns := range []string{"team", "none"} {
			r.Reject(memory.Rejected{Namespace: ns, Code: memory.CodeInvalid, Reason: fmt.Sprint(i), Body: body})
		}
	}
	kept := func() (n int) {
		for _, m := range open().List(100).Rejected {
			if strings.Contains(m.Body, "SECRET") {
				n++
			}
		}
		return n
	}
	if n := kept(); n != 7 {
		t.Errorf("%d bodies are kept while bob is there, want the 7 whose subjects can be read", n)
	}
	if err := x.keys.Destroy(x.subjects[1]); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Rejections{r, open()} {
		for _, m := range r.List(100).Rejected {
			if m.Body != "" {
				t.Errorf("still listed: %s %.80s", m.Namespace, m.Body)
			}
		}
	}
}

// What names nobody is kept as before, whether it is JSON or not.
func TestRejectedBodyThatNamesNobodyIsKept(t *testing.T) {
	_, open := newTeams(t)
	r := open()
	for _, body := range []string{`{"txet":"x"}`, `{"text":"broken`, "\xff\xfe", `[{"a":{"b":[1,null,true]}}]`, `{"subject":null}`} {
		r.Reject(memory.Rejected{Namespace: "team", Code: memory.CodeInvalid, Body: body})
		if got := r.List(1).Rejected[0].Body; got != body {
			t.Errorf("%q is kept as %q", body, got)
		}
	}
}

// Each refusal walked the list and wrote to the file: a flood of nonsense kept a
// processor busy for minutes after it had ended.
func TestFloodOfRefusalsIsOnlyCounted(t *testing.T) {
	path, open, now := newRejections(t)
	r := open()
	r.Reject(memory.Rejected{Code: memory.CodeQuota, Reason: "before the flood"})
	for range 50_000 {
		r.Reject(memory.Rejected{Code: memory.CodeInvalid})
	}
	r.Count(memory.CodeOverloaded)
	list := r.List(5000)
	if n := len(list.Rejected); n != rejectedKept || list.Rejected[n-1].Reason != "before the flood" {
		t.Errorf("%d are listed, the oldest is %q", n, list.Rejected[n-1].Reason)
	}
	if list.Counts["invalid"] != 50_000 || list.Counts["overloaded"] != 1 || list.NotListed != 50_002-rejectedKept {
		t.Errorf("counted %v, not listed %d", list.Counts, list.NotListed)
	}
	raw, err := os.ReadFile(path)
	if err != nil || bytes.Count(raw, []byte("\n")) > 2*rejectedKept {
		t.Errorf("%d lines, %v", bytes.Count(raw, []byte("\n")), err)
	}
	*now = now.Add(time.Second)
	for range 100 {
		r.Reject(memory.Rejected{Code: memory.CodeInvalid, Reason: "later"})
	}
	listed := 0
	for _, m := range r.List(5000).Rejected {
		if m.Reason == "later" {
			listed++
		}
	}
	if listed != rejectedRate {
		t.Errorf("%d of the second after are listed", listed)
	}
}

// TestUTF16BodyHidItsSubject: it is valid UTF-8 with NULs, in which no word is found,
// and was kept under the namespace's key.
func TestUTF16BodyHidItsSubject(t *testing.T) {
	x, open := newTeams(t, "ada")
	r := open()
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var body []byte
		for _, u := range utf16.Encode([]rune(`{"text":"SECRET","subject":"ada"}`)) {
			body = order.AppendUint16(body, u)
		}
		r.Reject(memory.Rejected{Namespace: "team", Code: memory.CodeInvalid, Body: string(body)})
	}
	if err := x.keys.Destroy(x.subjects...); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.List(10).Rejected {
		if m.Body != "" {
			t.Errorf("%q is kept", m.Body)
		}
	}
}

// TestReasonOutlivedAnErasedSubject: the body of a refusal that could be read was not
// passed on, so its reason, which quotes tags and uris, was sealed under the
// namespace's key.
func TestReasonOutlivedAnErasedSubject(t *testing.T) {
	x, open := newTeams(t, "ada")
	r := open()
	r.Reject(memory.Rejected{Namespace: "team", Code: memory.CodeInvalid, Reason: `tag "SECRET" is too long`, Body: `{"subject":"ada","tags":["SECRET"]}`, WellFormed: true})
	if list := r.List(10).Rejected; len(list) != 1 || list[0].Body != "" {
		t.Errorf("%+v", list)
	}
	if err := x.keys.Destroy(x.subjects...); err != nil {
		t.Fatal(err)
	}
	if list := r.List(10).Rejected; len(list) != 0 {
		t.Errorf("after the erasure: %+v", list)
	}
}
