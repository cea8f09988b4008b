package ingest

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"

	"mneme/internal/keyring"
)

const (
	// rejectedScan bounds the bodies that are looked through for subjects.
	rejectedScan = 64 << 10
	// rejectedSubjects bounds the keys that one line is sealed under.
	rejectedSubjects = 8
)

// keysFor gives the keys that a refused message is sealed under, and whether its
// body may be kept: those of all subjects that the body names, else that of the
// namespace, else the node's. The body is kept only if it is sure that its
// subjects are those, and if all of them have a key with which it ends.
func (r *Rejections) keysFor(namespace, body string) (keys []*keyring.DataKey, keepBody bool) {
	names, sure := namedSubjects(body)
	id, ok := r.find(namespace)
	if !ok {
		return []*keyring.DataKey{r.keys.Node()}, sure && len(names) == 0
	}
	for _, name := range names {
		key, err := r.keys.DataKey(id, name)
		if err != nil || len(keys) == rejectedSubjects {
			sure = false
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) > 0 {
		return keys, sure
	}
	key, err := r.keys.DataKey(id, "")
	if err != nil {
		key = r.keys.Node()
	}
	return []*keyring.DataKey{key}, sure
}

var (
	// hidesSubject finds words that may name a subject in another way than a
	// member "subject" does: in a text, in an encoded document, by another name.
	hidesSubject = regexp.MustCompile(`(?i)subject|base64`)
	// mayNameSubject is what has to be absent from a body that is not JSON.
	mayNameSubject = regexp.MustCompile(`(?i)subject|base64|\\u`)
)

// namedSubjects lists the values of all members "subject" of a JSON body, at any
// depth, each once. It is sure if the body names no subject in a way that it
// cannot read.
func namedSubjects(body string) (names []string, sure bool) {
	if len(body) > rejectedScan || strings.IndexByte(body, 0) >= 0 {
		return nil, false // UTF-16, say, in which no word is found
	}
	s := subjectScan{seen: map[string]bool{}, sure: true}
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return s.names, s.sure && len(s.open) == 0
		}
		if err != nil {
			return s.names, s.sure && !mayNameSubject.MatchString(body)
		}
		s.token(token)
	}
}

// subjectScan goes through the tokens of a document.
type subjectScan struct {
	open  []bool // for each open object or array: whether it is an object
	key   bool   // the next token of the innermost object is a member's name
	named bool   // the next token is the value of a member "subject"
	names []string
	seen  map[string]bool
	sure  bool
}

func (s *subjectScan) token(t json.Token) {
	text, isText := t.(string)
	if s.key && isText {
		s.key, s.named = false, strings.EqualFold(text, "subject")
		s.sure = s.sure && (s.named || !hidesSubject.MatchString(text))
		return
	}
	switch {
	case s.named && isText:
		if !s.seen[text] {
			s.seen[text] = true
			s.names = append(s.names, text)
		}
	case s.named && t != nil, isText && hidesSubject.MatchString(text):
		s.sure = false
	}
	s.named = false
	switch t {
	case json.Delim('{'), json.Delim('['):
		s.open = append(s.open, t == json.Delim('{'))
	case json.Delim('}'), json.Delim(']'):
		s.open = s.open[:len(s.open)-1]
	}
	s.key = len(s.open) > 0 && s.open[len(s.open)-1]
}
