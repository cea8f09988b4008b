package natsapi

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/micro"

	"mneme/memory"
)

func TestChanges(t *testing.T) {
	b := newBench(t, nil)
	for _, tt := range []struct {
		name, subject, body string
		headers             []string
		call, answer        string
	}{
		{"revise", "mem.api.team.revise", `{"id":"r","as":"me","text":"new"}`, nil, `Revise "team" "me" "r" {"text":"new"} 0 ""`, `{"record_id":"r","version":2,"position":"p0.1.43.0"}`},
		{"revise under an id", "mem.api.team.revise", `{"id":"r","as":"me","tags":[]}`, []string{"Nats-Msg-Id", "k-1"}, `Revise "team" "me" "r" {"tags":[]} 0 "k-1"`, ""},
		{"revise a version", "mem.api.team.revise", `{"id":"r","text":"new","if_version":2}`, []string{"mneme-agent", "you"}, `Revise "team" "you" "r" {"text":"new"} 2 ""`, ""},
		{"forget", "mem.api.team.forget", `{"id":"r","as":"me"}`, []string{"Mneme-Agent", "you"}, `Forget "team" "me" "r" 0`, `{"record_id":"r","position":"p0.1.44.0"}`},
		{"forget a version", "mem.api.team.forget", `{"id":"r","if_version":2}`, []string{"Mneme-Agent", "you"}, `Forget "team" "you" "r" 2`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := b.ask(t, tt.subject, tt.body, tt.headers...)
			if answer.Header.Get(micro.ErrorHeader) != "" || b.f.lastCall() != tt.call || !strings.Contains(string(answer.Data), tt.answer) {
				t.Errorf("%s\ncall %s\nwant %s", answer.Data, b.f.lastCall(), tt.call)
			}
		})
	}
}

func TestChangesThatAreRefused(t *testing.T) {
	b := newBench(t, nil)
	for _, tt := range []struct{ name, subject, body, want string }{
		{"revise nothing", "mem.api.team.revise", `{"text":"new","as":"me"}`, "id is missing"},
		{"revise body", "mem.api.team.revise", `{"id":"r","text":1}`, `"text" at byte`},
		{"revise unknown field", "mem.api.team.revise", `{"id":"r","at_least":"p0.0.1.0"}`, "at_least"},
		{"revise version", "mem.api.team.revise", `{"id":"r","as":"me","if_version":-1}`, "if_version is -1"},
		{"revise namespace", "mem.api.Team.revise", `{"id":"r","as":"me"}`, "valid namespace"},
		{"forget nothing", "mem.api.team.forget", `{"as":"me"}`, "id is missing"},
		{"forget body", "mem.api.team.forget", ``, "empty"},
		{"forget with a text", "mem.api.team.forget", `{"id":"r","text":"x"}`, "text"},
		{"forget version", "mem.api.team.forget", `{"id":"r","if_version":-3}`, "if_version is -3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := b.ask(t, tt.subject, tt.body)
			var p memory.Problem
			must(t, json.Unmarshal(answer.Data, &p))
			if p.Code != memory.CodeInvalid || !strings.Contains(p.Detail, tt.want) || answer.Header.Get(micro.ErrorCodeHeader) != "400" {
				t.Errorf("%v %+v, want %q", answer.Header, p, tt.want)
			}
		})
	}
	if b.f.lastCall() != "" {
		t.Errorf("called %s", b.f.lastCall())
	}
}

// A read that ends with its time is a timeout; a change may have happened.
func TestChangeThatIsCutShort(t *testing.T) {
	b := newBench(t, nil)
	for _, tt := range []struct {
		fail error
		want memory.Code
	}{
		{memory.Errorf(memory.CodeConflict, "it is at version 4"), memory.CodeConflict},
		{context.DeadlineExceeded, memory.CodeOutcomeUnknown},
		{context.Canceled, memory.CodeOutcomeUnknown},
	} {
		b.f.onChange(func(context.Context) error { return tt.fail })
		for _, name := range []string{"revise", "forget"} {
			var p memory.Problem
			must(t, json.Unmarshal(b.ask(t, "mem.api.team."+name, `{"id":"r","as":"me"}`).Data, &p))
			if p.Code != tt.want {
				t.Errorf("%s: %v gives %s, want %s", name, tt.fail, p.Code, tt.want)
			}
		}
	}
}
