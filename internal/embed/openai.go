package embed

import (
	"encoding/json"
	"fmt"
	"strings"
)

// openAIWire is POST /embeddings as OpenAI, llama.cpp, LM Studio, vLLM, LocalAI,
// Infinity, Mistral and others speak it.
type openAIWire struct {
	encoding string // "float" or "base64" (little-endian float32)
}

type openAIRequest struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	Dimensions     int      `json:"dimensions,omitempty"` // some servers refuse the field itself
	EncodingFormat string   `json:"encoding_format"`
}

func (w openAIWire) request(model string, _ Purpose, texts []string, want int) (string, any) {
	return "/embeddings", openAIRequest{Model: model, Input: texts, Dimensions: want, EncodingFormat: w.encoding}
}

// answer puts the embeddings in order of their index; not every server keeps it.
func (openAIWire) answer(body []byte, texts int) ([]vector, error) {
	var a struct {
		Data []struct {
			Index     *int   `json:"index"`
			Embedding vector `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if len(a.Data) != texts {
		return make([]vector, len(a.Data)), nil // the count is judged by the caller
	}
	out := make([]vector, texts)
	for position, d := range a.Data {
		at := position
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= texts || out[at] != nil {
			return nil, fmt.Errorf("index %d is out of range or there twice", at)
		}
		if out[at] = d.Embedding; d.Embedding == nil {
			out[at] = vector{} // marks the place as taken; refused later
		}
	}
	return out, nil
}

// failure reads {"error":{message,type,param,code}} and the variants of
// compatible servers: {"error":"…"}, {"message":"…"}, {"detail":"…"}.
func (openAIWire) failure(body []byte) failure {
	var b struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &b) != nil {
		return failure{message: string(body)}
	}
	var inner struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"` // a string at OpenAI, a number at llama.cpp
	}
	f := failure{message: b.Message}
	switch {
	case json.Unmarshal(b.Error, &inner) == nil:
		f.message, f.code = inner.Message, strings.Trim(string(inner.Code), `"`)
	case json.Unmarshal(b.Error, &f.message) == nil:
	case f.message == "":
		if json.Unmarshal(b.Detail, &f.message) != nil {
			f.message = string(b.Detail)
		}
	}
	for _, mark := range []string{f.code, inner.Type} {
		switch mark {
		case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active":
			f.exhausted = true
		case "invalid_api_key":
			f.badKey = true
		}
	}
	return f
}

func (openAIWire) authorise(key string) (name, value string) {
	return "Authorization", "Bearer " + key
}
