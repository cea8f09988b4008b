package mcp

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxBody bounds one message: a text of the greatest length, escaped, with room to spare.
const maxBody = 4 << 20

// A batch is as much work as its sender likes, in one request. No revision after 2025-03-26 has
// them, and none is taken.
const noBatches = "this server takes no batches: send each message by itself"

// parse reads a message, or says with which response it is refused. It is stricter than the
// SDK, which stores text that is not UTF-8, or has half a pair of surrogates, as another one, and
// answers an id that it cannot hold under another id, for which its sender may wait, too.
func parse(message []byte) (m jsonrpc.Message, refused []byte) {
	switch {
	case len(message) > maxBody:
		return nil, refusal(nil, jsonrpc.CodeInvalidRequest, "the message has more than 4 MiB")
	case isBatch(message):
		return nil, refusal(nil, jsonrpc.CodeInvalidRequest, noBatches)
	case !utf8.Valid(message):
		return nil, refusal(nil, jsonrpc.CodeParseError, "this is not UTF-8")
	case !json.Valid(message):
		return nil, refusal(nil, jsonrpc.CodeParseError, "this is not JSON: send each message whole, and by itself")
	}
	var of map[string]json.RawMessage // a struct would take names in other cases, too
	_ = json.Unmarshal(message, &of)
	sent := of["id"]
	if of["method"] == nil { // no request, so the id is not the client's
		sent = nil
	}
	id, told := checkID(sent)
	m, err := jsonrpc.DecodeMessage(message)
	switch req, _ := m.(*jsonrpc.Request); {
	case told != "":
		return nil, refusal(id, jsonrpc.CodeInvalidRequest, told)
	case halved(message):
		return nil, refusal(id, jsonrpc.CodeInvalidRequest, "a string has half a pair of surrogates, as \\ud800 alone, which is no character")
	case err != nil:
		return nil, refusal(id, jsonrpc.CodeInvalidRequest, "this is no message of JSON-RPC 2.0: "+err.Error())
	case req != nil && req.Method == "initialize" && req.Params != nil:
		var p mcp.InitializeParams
		if err := json.Unmarshal(req.Params, &p); err != nil { // which the SDK has no code for
			return nil, refusal(id, jsonrpc.CodeInvalidParams, "the params of initialize do not fit: "+err.Error())
		}
	}
	return m, nil
}

// halved reports whether a string in JSON has half a pair of surrogates as an escape: decoders
// make U+FFFD of it, which is another text.
func halved(message []byte) bool {
	for {
		i := bytes.IndexByte(message, '\\')
		if i < 0 {
			return false
		}
		message = message[i:]
		switch high, low := escaped(message), escaped(message[min(6, len(message)):]); {
		case utf16.IsSurrogate(high) && utf16.DecodeRune(high, low) == utf8.RuneError:
			return true
		case utf16.IsSurrogate(high):
			message = message[12:]
		default:
			message = message[2:]
		}
	}
}

// escaped is the unit of UTF-16 that an escape of valid JSON stands for; 0 where there is none of that kind.
func escaped(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(s[2:6]), 16, 16)
	return rune(n)
}

func isBatch(message []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(message, " \t\r\n"), []byte("["))
}

// maxID is the greatest integer that every reader of JSON can hold.
const maxID = 1 << 53

// checkID says what is wrong with the id of a request, and under which one that can be told: as
// it was sent, nil where there is none that has a form.
func checkID(id json.RawMessage) (as any, told string) {
	switch {
	case id == nil:
		return nil, ""
	case halved(id):
		return nil, "an id has half a pair of surrogates, which is no character"
	case id[0] == '"':
		return id, ""
	case id[0] != '-' && (id[0] < '0' || id[0] > '9'):
		return nil, "an id is a string or an integer"
	}
	f, err := strconv.ParseFloat(string(id), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= maxID {
		return id, "an id is a string or an integer of less than 2^53"
	}
	return id, ""
}

// refusal is the response to what is no request, or to one that is not taken. Its id is nil where
// none can be read.
func refusal(id any, code int64, message string) []byte {
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message}})
	return b
}

// refuse answers a request with a refusal.
func refuse(w http.ResponseWriter, status int, refused []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(refused)
}

// spoken answers in JSON-RPC what the SDK refuses in plain text, which some clients take for a
// broken connection and wait on. A notification that nobody knows is passed over, as on standard
// input.
type spoken struct {
	http.ResponseWriter
	to      jsonrpc.Message
	refuses int // with which status; 0 = it does not
}

// Unwrap is for http.ResponseController.
func (w *spoken) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *spoken) WriteHeader(status int) {
	if status >= 400 && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.refuses = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *spoken) Write(b []byte) (int, error) {
	if w.refuses == 0 {
		return w.ResponseWriter.Write(b)
	}
	var id any
	req, _ := w.to.(*jsonrpc.Request)
	if req != nil {
		id = req.ID.Raw()
	}
	unknown := bytes.HasPrefix(b, []byte("JSON RPC not handled"))
	switch {
	case unknown && req != nil && !req.IsCall():
		w.Header().Del("Content-Type")
		w.ResponseWriter.WriteHeader(http.StatusAccepted)
	case unknown && req != nil:
		refuse(w.ResponseWriter, http.StatusOK, refusal(id, jsonrpc.CodeMethodNotFound, "method not found: "+strconv.Quote(req.Method)))
	default:
		refuse(w.ResponseWriter, w.refuses, refusal(id, jsonrpc.CodeInvalidRequest, string(bytes.TrimSpace(b))))
	}
	return len(b), nil
}
