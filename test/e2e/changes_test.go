package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"mneme/memory"
)

// TestChangesOverNATS: a memory is revised and forgotten by an agent that speaks NATS
// alone, and a revision that is sent again under its id is made once.
func TestChangesOverNATS(t *testing.T) {
	d := start(t, t.TempDir())
	nc, err := nats.Connect(d.nats)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ask := func(subject, body, id string, out any) memory.Code {
		t.Helper()
		m := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{"Mneme-Agent": {"agent-7"}}}
		if id != "" {
			m.Header.Set(nats.MsgIdHdr, id)
		}
		answer, err := nc.RequestMsg(m, patience)
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			Code memory.Code `json:"code"`
		}
		if err := json.Unmarshal(answer.Data, &p); err != nil {
			t.Fatalf("%s: %v", answer.Data, err)
		}
		if p.Code == "" {
			if err := json.Unmarshal(answer.Data, out); err != nil {
				t.Fatalf("%s: %v", answer.Data, err)
			}
		}
		return p.Code
	}
	var kept struct {
		RecordID string `json:"record_id"`
	}
	ask("mem.in.default.agent-7.capture", `{"text":"deploys happen on Tuesdays","tags":["deploy"]}`, "", &kept)
	revise := fmt.Sprintf(`{"id":%q,"text":"deploys happen on Wednesdays"}`, kept.RecordID)
	for range 2 {
		var r memory.RevisionResponse
		if code := ask("mem.api.default.revise", revise, "change-1", &r); code != "" || r.Version != 2 || r.RecordID != kept.RecordID {
			t.Fatalf("revise: %s %+v", code, r)
		}
	}
	var rec memory.Record
	if code := ask("mem.api.default.get", fmt.Sprintf(`{"id":%q}`, kept.RecordID), "", &rec); code != "" || rec.Version != 2 || rec.Text != "deploys happen on Wednesdays" || len(rec.Tags) != 1 {
		t.Errorf("get: %s %+v", code, rec)
	}
	if code := ask("mem.api.default.revise", fmt.Sprintf(`{"id":%q,"text":"x","if_version":1}`, kept.RecordID), "", nil); code != memory.CodeConflict {
		t.Errorf("revise of the version before: %q", code)
	}
	if code := ask("mem.api.default.forget", fmt.Sprintf(`{"id":%q,"if_version":1}`, kept.RecordID), "", nil); code != memory.CodeConflict {
		t.Errorf("forget of the version before: %q", code)
	}
	var gone memory.ForgetResponse
	if code := ask("mem.api.default.forget", fmt.Sprintf(`{"id":%q}`, kept.RecordID), "", &gone); code != "" || gone.RecordID != kept.RecordID {
		t.Errorf("forget: %s %+v", code, gone)
	}
	for _, name := range []string{"get", "forget"} {
		if code := ask("mem.api.default."+name, fmt.Sprintf(`{"id":%q}`, kept.RecordID), "", nil); code != memory.CodeNotFound {
			t.Errorf("%s of what was forgotten: %q", name, code)
		}
	}
}
