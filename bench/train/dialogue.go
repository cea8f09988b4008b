package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// conversations reads the JSON of Taskmaster ({utterances: [{text}]}), Topical-Chat
// ({id: {content: [{message}]}}), KdConv ([{messages: [{message}]}]), CrossWOZ
// ({id: {messages: [{content}]}}, zipped) and the simulated dialogues ({turns:
// [{system_utterance: {text}, user_utterance: {text}}]}).
func conversations(f file) ([][]string, error) {
	data := f.data
	if strings.HasSuffix(f.path, ".zip") {
		var err error
		if data, err = unzip(data); err != nil {
			return nil, fmt.Errorf("unzip %s: %w", f.path, err)
		}
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		byID := map[string]json.RawMessage{}
		if err := json.Unmarshal(data, &byID); err != nil {
			return nil, nil // another kind of file
		}
		for _, id := range slices.Sorted(maps.Keys(byID)) {
			list = append(list, byID[id])
		}
	}
	var out [][]string
	for _, raw := range list {
		var d conversation
		if json.Unmarshal(raw, &d) != nil {
			continue
		}
		if turns := d.list(); len(turns) > 1 {
			out = append(out, turns)
		}
	}
	return out, nil
}

type conversation struct {
	Utterances []struct{ Text string }
	Content    json.RawMessage
	Messages   []struct{ Message, Content string }
	Turns      []struct {
		System struct{ Text string } `json:"system_utterance"`
		User   struct{ Text string } `json:"user_utterance"`
	}
}

func (d conversation) list() []string {
	var out []string
	add := func(s string) {
		if s = strings.TrimSpace(spaces.ReplaceAllString(s, " ")); s != "" {
			out = append(out, s)
		}
	}
	for _, u := range d.Utterances {
		add(u.Text)
	}
	var content []struct{ Message string }
	if json.Unmarshal(d.Content, &content) == nil {
		for _, m := range content {
			add(m.Message)
		}
	}
	for _, m := range d.Messages {
		add(m.Message + m.Content)
	}
	for _, t := range d.Turns {
		add(t.System.Text)
		add(t.User.Text)
	}
	return out
}

func unzip(data []byte) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, ".json") && !strings.HasPrefix(f.Name, "__") {
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			defer r.Close()
			return io.ReadAll(r)
		}
	}
	return nil, nil
}
