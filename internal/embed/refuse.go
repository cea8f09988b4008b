package embed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// failure is an error body in the provider's words.
type failure struct {
	message    string
	code       string // machine-readable, if any
	exhausted  bool   // the account's quota, not the rate, is the cause
	badKey     bool
	retryAfter time.Duration
}

// refused classifies an answer other than 200.
//
//	401 403            ErrAuth
//	402, quota used up ErrQuota
//	404 501            ErrNoModel
//	413, too long      ErrBadInput, cut in halves
//	500 about NaN      ErrBadAnswer, cut in halves (Ollama cannot encode it)
//	408 409 425 429    ErrUnavailable, repeated
//	5xx                ErrUnavailable, repeated
//	3xx                ErrConfig: the address is wrong
//	other 4xx          ErrBadInput, cut in halves
func (l *link) refused(c call, resp *http.Response, body []byte) error {
	f := l.wire.failure(body)
	status := resp.StatusCode
	e := &Error{Status: status, Detail: l.words(status, f.message, c.texts)}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || f.badKey:
		e.Kind = ErrAuth
		if d, _ := providerDefaults(l.cfg.Provider); d.keyName != "" {
			e.Hint = "check " + d.keyName
		}
	case status == http.StatusPaymentRequired || f.exhausted:
		e.Kind = ErrQuota
	case status == http.StatusNotFound:
		l.noModel(e, f)
	case status == http.StatusNotImplemented:
		e.Kind = ErrNoModel
	case isTooLarge(status, f.message):
		e.Kind, e.split = ErrBadInput, true
	case status == http.StatusInternalServerError && strings.Contains(f.message, "unsupported value: NaN"):
		e.Kind, e.split = ErrBadAnswer, true
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status >= 500:
		e.Kind, e.retry = ErrUnavailable, true
		e.RetryAfter = max(f.retryAfter, retryAfterHeader(resp.Header, l.clock.Now()))
	case status >= 400:
		e.Kind, e.split = ErrBadInput, true
		if strings.Contains(f.message, "does not support embed") {
			e.Kind, e.split = ErrNoModel, false
		}
	default:
		e.Kind = ErrConfig
		e.Hint = "check the base URL"
	}
	return l.fail(e)
}

// noModel fills in a 404, which is also what a wrong address answers.
func (l *link) noModel(e *Error, f failure) {
	e.Kind = ErrNoModel
	named := strings.Contains(strings.ToLower(f.message), "model") || f.code == "model_not_found"
	switch {
	case !named:
		e.Hint = "check the base URL"
	case l.cfg.Provider == ProviderOllama:
		e.Detail = fmt.Sprintf("model %q not found", l.cfg.Model)
		e.Hint = "run: ollama pull " + l.cfg.Model
	default:
		e.Detail = fmt.Sprintf("model %q not found", l.cfg.Model)
	}
}

// words makes one safe line of what a server said: short, without the key and
// control characters, and without the texts, which some servers quote.
func (l *link) words(status int, message string, texts []string) string {
	const longest = 200
	message = keyShaped().ReplaceAllString(l.cfg.APIKey.scrub(message), redacted)
	message = strings.Join(strings.FieldsFunc(message, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if runes := []rune(message); len(runes) > longest {
		message = string(runes[:longest]) + "…"
	}
	if quotes(message, texts) {
		message = "(the server's words quote the text and are left out)"
	}
	line := fmt.Sprintf("status %d", status)
	if name := http.StatusText(status); name != "" {
		line += " " + name
	}
	if message != "" {
		line += ": " + message
	}
	return line
}

// quotes reports whether a message repeats a recognisable part of a text: all of
// it, or a run of bytes that is no coincidence.
func quotes(message string, texts []string) bool {
	const shortest, run = 8, 24
	for _, text := range spelt(texts) {
		if len(text) >= shortest && strings.Contains(message, text) {
			return true
		}
		for i := 0; i+run <= len(message) && len(text) >= run; i++ {
			if strings.Contains(text, message[i:i+run]) {
				return true
			}
		}
	}
	return false
}

// spelt are texts as they are and as a server quotes them in JSON.
func spelt(texts []string) []string {
	out := slices.Clone(texts)
	for _, text := range texts {
		for _, html := range []bool{false, true} {
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(html)
			if err := enc.Encode(text); err == nil {
				if quoted := strings.Trim(b.String(), "\"\n"); quoted != text {
					out = append(out, quoted)
				}
			}
		}
	}
	return out
}

// keyShaped matches keys that a server may quote in part ("sk-ab***yz").
func keyShaped() *regexp.Regexp {
	return regexp.MustCompile(`\b(sk-[A-Za-z0-9_*.-]{4,}|AIza[A-Za-z0-9_*-]{8,})`)
}

// isTooLarge reports whether fewer or shorter texts would have been accepted.
// Only 413 says so by its number; for the rest there are only words: 500 is for
// llama.cpp ("input is too large to process. increase the physical batch size"),
// 429 for OpenAI when one request exceeds the tokens of a whole minute.
func isTooLarge(status int, message string) bool {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusTooManyRequests:
		return strings.Contains(strings.ToLower(message), "request too large")
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
	default:
		return false
	}
	message = strings.ToLower(message)
	for _, phrase := range []string{
		"maximum context length", "context length", "too long", "too large", "too many tokens", "too many inputs",
		"max_tokens_per_request", "maximum request size", "maximum allowed batch size", "batch size",
		"array too long", "at most 100 requests", "payload size exceeds", "token limit", "exceeds the maximum",
	} {
		if strings.Contains(message, phrase) {
			return true
		}
	}
	return false
}
