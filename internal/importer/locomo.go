package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"mneme/memory"
)

// locomoSample is one conversation of the LoCoMo data set (Maharana et al.,
// 2024): its sittings are the keys session_1, session_2, … of conversation,
// each with a session_N_date_time. Dates without a sitting occur.
type locomoSample struct {
	SampleID     string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	QA           []locomoQA                 `json:"qa"`
}

type locomoTurn struct {
	Speaker string `json:"speaker"`
	DiaID   string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

// locomoDates are the ways in which sittings are dated.
var locomoDates = []string{"3:04 pm on 2 January, 2006", "3:04 pm on 2 January 2006"}

// samples reads the array of conversations one by one.
type samples struct {
	dec     *json.Decoder
	started bool
	n       int
}

func newSamples(r io.Reader) *samples { return &samples{dec: json.NewDecoder(r)} }

// next returns io.EOF behind the last one.
func (s *samples) next() (locomoSample, error) {
	if !s.started {
		tok, err := s.dec.Token()
		if err != nil {
			return locomoSample{}, damaged("locomo", err)
		}
		if tok != json.Delim('[') {
			return locomoSample{}, damaged("locomo", errors.New("it does not begin with an array"))
		}
		s.started = true
	}
	if !s.more() {
		if _, err := s.dec.Token(); err != nil {
			return locomoSample{}, damaged("locomo", err)
		}
		return locomoSample{}, io.EOF
	}
	var sample locomoSample
	s.n++
	if err := s.dec.Decode(&sample); err != nil {
		return locomoSample{}, damaged("locomo", fmt.Errorf("conversation %d: %w", s.n, plainJSONError(err)))
	}
	if sample.SampleID == "" {
		sample.SampleID = "sample-" + strconv.Itoa(s.n)
	}
	return sample, nil
}

func (s *samples) more() bool { return s.dec.More() }

type locomo struct {
	noFiles
	in    *samples
	opts  Options
	queue []locomoEntry // of the conversation that is being read
	turn  int           // running number of the last turn
	done  error
}

// locomoEntry is an item or what is wrong with it.
type locomoEntry struct {
	item Item
	err  error
}

func newLocomo(r io.Reader, opts Options) *locomo {
	return &locomo{in: newSamples(r), opts: opts}
}

// Next returns the next turn.
func (l *locomo) Next() (Item, error) {
	for len(l.queue) == 0 {
		if l.done == nil {
			l.done = l.load()
		}
		if l.done != nil {
			return Item{}, l.done
		}
	}
	e := l.queue[0]
	l.queue = l.queue[1:]
	return e.item, e.err
}

// load reads the next conversation into the queue.
func (l *locomo) load() error {
	sample, err := l.in.next()
	if err != nil {
		return err
	}
	if l.opts.Namespace != "" && (l.in.n > 1 || l.in.more()) {
		return memory.Errorf(memory.CodeInvalid, "the file holds several conversations, one namespace is not enough").
			WithHint("leave out --namespace, or give a --namespace-prefix")
	}
	namespace := l.opts.Namespace
	if namespace == "" {
		namespace = nameOr("conversation", l.opts.NamespacePrefix+sample.SampleID)
	}
	l.queue = l.queue[:0]
	ids := map[string]bool{}
	numbers := sittings(sample.Conversation)
	if len(numbers) == 0 {
		l.bad(sample.SampleID, errors.New("holds no sittings: a conversation of LoCoMo has session_1, session_2, …"))
	}
	for _, n := range numbers {
		l.sitting(sample, namespace, n, ids)
	}
	return nil
}

// sittings returns the numbers of the sittings in ascending order.
func sittings(conversation map[string]json.RawMessage) []int {
	var ns []int
	for key := range conversation {
		rest, ok := strings.CutPrefix(key, "session_")
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(rest); err == nil && n >= 0 && strconv.Itoa(n) == rest {
			ns = append(ns, n)
		}
	}
	sort.Ints(ns)
	return ns
}

func (l *locomo) bad(where string, err error) {
	l.queue = append(l.queue, locomoEntry{err: &ItemError{Line: l.turn, Where: where, Err: err}})
}

// sitting queues the turns of one sitting. ids are the dia_ids so far.
func (l *locomo) sitting(sample locomoSample, namespace string, n int, ids map[string]bool) {
	key := "session_" + strconv.Itoa(n)
	conversation := "session-" + strconv.Itoa(n)
	where := sample.SampleID + " " + conversation
	raw := sample.Conversation[key]
	if bytes.Equal(raw, []byte("null")) {
		return
	}
	var turns []json.RawMessage
	if err := json.Unmarshal(raw, &turns); err != nil {
		l.bad(where, errors.New("is not a list of turns"))
		return
	}
	when, err := sittingDate(sample.Conversation[key+"_date_time"])
	if err != nil && len(turns) > 0 {
		l.bad(where, fmt.Errorf("%w; its turns are read without one", err))
	}
	for i, rawTurn := range turns {
		l.turn++
		var t locomoTurn
		if err := json.Unmarshal(rawTurn, &t); err != nil {
			l.bad(fmt.Sprintf("%s turn %d", where, i+1), plainJSONError(err))
			continue
		}
		if t.DiaID == "" || ids[t.DiaID] {
			l.bad(fmt.Sprintf("%s turn %d", where, i+1), fmt.Errorf("dia_id %q is missing or was there before", t.DiaID))
			continue
		}
		ids[t.DiaID] = true
		item := Item{Namespace: namespace, Line: l.turn, Capture: turnCapture(sample.SampleID, conversation, t)}
		if !when.IsZero() {
			at := when.Add(time.Duration(i) * time.Second)
			item.Capture.OccurredAt = &at
		}
		item, err := check(item, sample.SampleID+" "+t.DiaID)
		l.queue = append(l.queue, locomoEntry{item: item, err: err})
	}
}

// turnCapture makes a capture of one turn. A caption stands behind the text.
func turnCapture(sampleID, conversation string, t locomoTurn) memory.Capture {
	text := strings.TrimSpace(t.Text)
	if caption := strings.TrimSpace(t.Caption); caption != "" {
		text = strings.TrimSpace(text + " [image: " + caption + "]")
	}
	c := memory.Capture{
		ID:           "locomo/" + sampleID + "/" + t.DiaID,
		URI:          "locomo/" + sampleID + "/" + t.DiaID,
		Text:         text,
		Kind:         memory.KindMessage,
		Conversation: conversation,
	}
	if t.Speaker != "" {
		c.Agent = nameOr("speaker", t.Speaker)
	}
	// A struct of strings always encodes.
	c.Metadata, _ = json.Marshal(struct {
		DiaID   string `json:"dia_id"`
		Speaker string `json:"speaker"`
	}{t.DiaID, t.Speaker})
	return c
}

// sittingDate reads dates such as "1:56 pm on 8 May, 2023", taken as UTC.
func sittingDate(raw json.RawMessage) (time.Time, error) {
	if len(raw) == 0 {
		return time.Time{}, errors.New("has no date")
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return time.Time{}, errors.New("its date is not a string")
	}
	for _, layout := range locomoDates {
		if t, err := time.Parse(layout, strings.ToLower(strings.Join(strings.Fields(s), " "))); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("its date %q is not understood", s)
}
