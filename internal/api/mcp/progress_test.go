package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mneme/client"
	"mneme/internal/api/mcp"
)

// progress is a line that tells of it, or an answer.
type progress struct {
	ID     any
	Method string
	Params struct {
		ProgressToken any
		Progress      float64
		Message       string
	}
}

// wanting is a call of a tool that wants to hear of its progress.
func wanting(id int, token string) string {
	return strings.Replace(callLine(id), `"params":{`, `"params":{"_meta":{"progressToken":`+token+`},`, 1)
}

// TestACallTellsOfItsProgress each second that it takes, where that is asked for, and no more once it is answered.
func TestACallTellsOfItsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, "")
		next := func() (p progress) {
			t.Helper()
			line, err := s.out.ReadString('\n')
			if err != nil || json.Unmarshal([]byte(line), &p) != nil {
				t.Fatalf("%q, %v", line, err)
			}
			return p
		}
		s.send(wanting(1, `"a"`) + callLine(2))
		for n := 1; n <= 3; n++ {
			if p := next(); p.Method != "notifications/progress" || p.Params.ProgressToken != "a" || p.Params.Progress != float64(n) || p.Params.Message != fmt.Sprintf("at work for %d s", n) {
				t.Errorf("%+v", p)
			}
		}
		s.letGo(2, errors.New("no node"))
		s.answered(1, 2)
		time.Sleep(5 * time.Second)
		s.send(wanting(3, "7"))
		s.letGo(1, errors.New("no node"))
		s.answered(3) // at once
		s.send(wanting(4, "8"))
		if p := next(); p.Params.ProgressToken != 8.0 {
			t.Errorf("%+v", p)
		}
		s.send(cancelLine(4))
		time.Sleep(5 * time.Second)
		s.send(`{"jsonrpc":"2.0","id":5,"method":"ping"}` + "\n")
		if p := next(); p.ID != 5.0 {
			t.Errorf("of a call that was cancelled it tells %+v", p)
		}
	})
}

// What is told of calls, and read by nobody, holds up neither their end nor those that come after them.
func TestProgressThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, "")
		for id := range 40 {
			s.send(wanting(id, fmt.Sprint(id)))
		}
		first := s.atWork()
		time.Sleep(3 * time.Second)
		s.letGo(40, errors.New("no node"))
		if n := s.atWork(); n <= first {
			t.Errorf("%d are at work, and then %d", first, n)
		}
		open := 40
		for open > 0 {
			if r := s.receive(); r.ID != nil {
				open--
			}
		}
	})
}

// late answers after some time.
type late struct{ after time.Duration }

func (l late) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(l.after)
	return nil, errors.New("no node")
}

// Over HTTP it is told in the answer's own stream, in both eras.
func TestProgressOverHTTP(t *testing.T) {
	for revision, meta := range map[string]string{
		"2025-11-25": "",
		"2026-07-28": `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`,
	} {
		t.Run(revision, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, err := client.New("http://127.0.0.1:1", client.Options{HTTPClient: &http.Client{Transport: late{2500 * time.Millisecond}}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = api.Close() }()
				h, err := mcp.NewHandler(func(http.Header) (mcp.Caller, error) { return mcp.Caller{Client: api, Namespace: "team"}, nil }, "1", nil)
				if err != nil {
					t.Fatal(err)
				}
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(
					`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_forget","arguments":{"id":"01M8BA5VCEPF42W55CG2R4PF3W"},"_meta":{"progressToken":5`+meta+`}}}`))
				for name, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": "memory_forget"} {
					r.Header.Set(name, v)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				var told []progress
				for line := range strings.Lines(w.Body.String()) {
					if data, ok := strings.CutPrefix(line, "data: "); ok {
						var p progress
						if err := json.Unmarshal([]byte(data), &p); err != nil {
							t.Fatal(err)
						}
						told = append(told, p)
					}
				}
				if len(told) < 3 || told[0].Params.ProgressToken != 5.0 || told[0].Params.Progress != 1 || told[1].Params.Progress != 2 || told[len(told)-1].ID != 1.0 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		})
	}
}
