package embed

import "encoding/json"

// ollamaWire is POST /api/embed. Ollama cuts a text that is longer than the
// model's context: the vector of its beginning is better than none.
type ollamaWire struct{}

type ollamaRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Truncate   bool     `json:"truncate"`
	Dimensions int      `json:"dimensions,omitempty"`
}

func (ollamaWire) request(model string, _ Purpose, texts []string, want int) (string, any) {
	return "/api/embed", ollamaRequest{Model: model, Input: texts, Truncate: true, Dimensions: want}
}

func (ollamaWire) answer(body []byte, _ int) ([]vector, error) {
	var a struct {
		Embeddings []vector `json:"embeddings"`
	}
	err := json.Unmarshal(body, &a)
	return a.Embeddings, err
}

// failure reads {"error":"…"}.
func (ollamaWire) failure(body []byte) failure {
	var b struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil || b.Error == "" {
		return failure{message: string(body)}
	}
	return failure{message: b.Error}
}

// authorise is for an Ollama behind a gateway; Ollama itself knows no keys.
func (ollamaWire) authorise(key string) (name, value string) {
	return "Authorization", "Bearer " + key
}
