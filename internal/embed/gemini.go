package embed

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// geminiWire is POST /models/{model}:batchEmbedContents. Only full-size vectors
// come normalised; all are normalised here.
type geminiWire struct{}

type geminiRequest struct {
	Requests []geminiItem `json:"requests"`
}

type geminiItem struct {
	Model   string `json:"model"`
	Content struct {
		Parts []geminiPart `json:"parts"`
	} `json:"content"`
	TaskType             string `json:"taskType,omitempty"`
	OutputDimensionality int    `json:"outputDimensionality,omitempty"`
}

type geminiPart struct {
	Text string `json:"text"`
}

func (geminiWire) request(model string, p Purpose, texts []string, want int) (string, any) {
	model = strings.TrimPrefix(model, "models/")
	items := make([]geminiItem, len(texts))
	for i, text := range texts {
		items[i].Model = "models/" + model
		items[i].Content.Parts = []geminiPart{{Text: text}}
		items[i].TaskType = geminiTask(model, p)
		items[i].OutputDimensionality = want
	}
	return "/models/" + url.PathEscape(model) + ":batchEmbedContents", geminiRequest{Requests: items}
}

// geminiTask returns the task type. From generation 2 on the models take the
// task as part of the text instead: that is their prefix.
func geminiTask(model string, p Purpose) string {
	switch {
	case strings.HasPrefix(bareModel(model), "gemini-embedding-2"):
		return ""
	case p == Query:
		return "RETRIEVAL_QUERY"
	}
	return "RETRIEVAL_DOCUMENT"
}

func (geminiWire) answer(body []byte, _ int) ([]vector, error) {
	var a struct {
		Embeddings []struct {
			Values vector `json:"values"`
		} `json:"embeddings"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	out := make([]vector, len(a.Embeddings))
	for i, e := range a.Embeddings {
		out[i] = e.Values
	}
	return out, nil
}

// failure reads {"error":{code,message,status,details:[RetryInfo, QuotaFailure,
// ErrorInfo, …]}}. A wrong key comes as 400 with reason API_KEY_INVALID; a quota
// per day is used up for the day and not worth repeating.
func (geminiWire) failure(body []byte) failure {
	var b struct {
		Error struct {
			Message string `json:"message"`
			Status  string `json:"status"`
			Details []struct {
				Type       string `json:"@type"`
				RetryDelay string `json:"retryDelay"`
				Reason     string `json:"reason"`
				Violations []struct {
					QuotaID string `json:"quotaId"`
				} `json:"violations"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil || b.Error.Message == "" && b.Error.Status == "" {
		return failure{message: string(body)}
	}
	f := failure{message: b.Error.Message, code: b.Error.Status}
	for _, d := range b.Error.Details {
		if strings.HasSuffix(d.Type, "RetryInfo") {
			if delay, err := time.ParseDuration(d.RetryDelay); err == nil {
				f.retryAfter = max(f.retryAfter, delay)
			}
		}
		if d.Reason == "API_KEY_INVALID" {
			f.badKey = true
		}
		for _, v := range d.Violations {
			f.exhausted = f.exhausted || strings.Contains(v.QuotaID, "PerDay")
		}
	}
	return f
}

func (geminiWire) authorise(key string) (name, value string) { return "x-goog-api-key", key }
