package rest

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"mneme/internal/api"
	"mneme/internal/auth"
	"mneme/memory"
)

// captureCall is one parsed capture request.
type captureCall struct {
	namespace string
	actor     string // who is acting; the agent of items that name none
	key       string // Idempotency-Key
	wait      memory.Wait
	opt       api.CaptureOptions
}

func (s *server) capture(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	c := captureCall{
		namespace: r.PathValue("ns"),
		actor:     q.actor(r),
		wait:      oneOf(q, "wait", memory.WaitAccepted, memory.WaitApplied, memory.WaitSearchable),
		opt:       api.CaptureOptions{Origin: oneOf(q, "origin", memory.OriginCapture, memory.OriginImport, memory.OriginHook)},
	}
	if err := q.finish(); err != nil {
		return err
	}
	if c.opt.Origin == "" {
		c.opt.Origin = memory.OriginCapture
	}
	if c.key, err = idempotencyKey(r); err != nil {
		return err
	}
	body, err := readBody(r)
	if err == nil {
		err = api.CheckJSON(body)
	}
	if err != nil {
		return s.refused(c, memory.Capture{}, body, true, err)
	}
	if bytes.TrimSpace(body)[0] == '[' {
		return s.captureMany(w, r, c, body)
	}
	return s.captureOne(w, r, c, body)
}

func (s *server) captureOne(w http.ResponseWriter, r *http.Request, c captureCall, body []byte) error {
	item, err := s.captures.DecodeChecked(body)
	if err != nil {
		return s.refused(c, item, body, true, err)
	}
	c.complete(&item, c.key)
	resp, err := s.Writer.Capture(r.Context(), c.namespace, []memory.Capture{item}, c.opt, c.wait)
	if err != nil {
		return s.refused(c, item, body, false, err)
	}
	if len(resp.Results) != 1 {
		return memory.Errorf(memory.CodeInternal, "capture answered %d results for one item", len(resp.Results))
	}
	if e := resp.Results[0].Error; e != nil {
		err := &memory.Error{Code: e.Code, Message: e.Detail, Hint: e.Hint}
		return s.refused(c, item, body, false, err)
	}
	return s.writeJSON(w, c.status(resp), resp)
}

// captureMany writes the items that can be understood and answers for all: an
// item that cannot is rejected by itself.
func (s *server) captureMany(w http.ResponseWriter, r *http.Request, c captureCall, body []byte) error {
	raw, n := api.Elements(body, memory.MaxBatchItems)
	switch {
	case n == 0:
		return memory.Errorf(memory.CodeInvalid, "the array holds nothing to remember")
	case n > memory.MaxBatchItems:
		return s.refused(c, memory.Capture{}, body, false, memory.Errorf(memory.CodeTooLarge, "the array has %d items, at most %d are allowed", n, memory.MaxBatchItems).
			WithHint("send it in smaller batches"))
	}
	// What a write did has to be told, so there must be room before it is done.
	if size := int64(n * resultBytes); size > freeAnswer && !auth.IsLocal(r.Context()) {
		if !s.results.take(size) {
			return s.refused(c, memory.Capture{}, body, false, memory.Errorf(memory.CodeOverloaded, "the batches under way have answers of %d bytes, which is all there is room for", s.results.max.Load()).
				WithHint("send it again in a moment, or in batches of %d", freeAnswer/resultBytes))
		}
		defer s.results.give(size)
	}
	results := make([]memory.CaptureResult, len(raw))
	items := make([]memory.Capture, 0, len(raw))
	places := make([]int, 0, len(raw)) // of items in raw
	var hints hintsOnce
	for i, b := range raw {
		item, err := s.captures.DecodeChecked(b)
		if err != nil {
			results[i] = rejection(err)
			hints.shorten(results[i].Error)
			_ = s.refused(c, item, b, true, err)
			continue
		}
		key := ""
		if c.key != "" {
			key = c.key + "/" + strconv.Itoa(i)
		}
		c.complete(&item, key)
		items, places = append(items, item), append(places, i)
	}
	resp := memory.CaptureResponse{Results: []memory.CaptureResult{}}
	if len(items) > 0 {
		var err error
		resp, err = s.Writer.Capture(r.Context(), c.namespace, items, c.opt, c.wait)
		if err != nil {
			return s.refused(c, memory.Capture{Agent: c.actor}, body, false, err)
		}
		if len(resp.Results) != len(items) {
			return memory.Errorf(memory.CodeInternal, "capture answered %d results for %d items", len(resp.Results), len(items))
		}
	}
	for j, res := range resp.Results {
		results[places[j]] = res
		if e := res.Error; e != nil {
			_ = s.refused(c, items[j], raw[places[j]], false, &memory.Error{Code: e.Code, Message: e.Detail})
			hints.shorten(e)
		}
	}
	resp.Results = results
	return s.writeJSON(w, c.status(resp), resp)
}

// resultBytes is about how long the answer to one item of a batch may be, without
// its hint.
const resultBytes = 512

// hintsOnce takes away the hints that an earlier item of the answer has given: one
// that lists all fields would make an answer four times as long as its request.
type hintsOnce map[string]bool

func (h *hintsOnce) shorten(e *memory.ItemError) {
	if (*h)[e.Hint] {
		e.Hint = ""
		return
	}
	if *h == nil {
		*h = hintsOnce{}
	}
	(*h)[e.Hint] = true
}

// complete fills in what the request says about all items.
func (c *captureCall) complete(item *memory.Capture, key string) {
	if item.Agent == "" {
		item.Agent = c.actor
	}
	if item.ID == "" {
		item.ID = key
	}
}

// status is 202 if something that was asked for is still to come.
func (c *captureCall) status(resp memory.CaptureResponse) int {
	pending := resp.Vectors == "pending" || slices.ContainsFunc(resp.Results, func(r memory.CaptureResult) bool { return r.Vectors == "pending" })
	single := c.wait == memory.WaitAccepted
	if single || pending {
		return http.StatusAccepted
	}
	return http.StatusOK
}

func rejection(err error) memory.CaptureResult {
	e := memory.AsError(err)
	return memory.CaptureResult{Status: memory.StatusRejected, Error: &memory.ItemError{Code: e.Code, Detail: e.Message, Hint: e.Hint}}
}

// refused lists a refused message and returns its error. A write whose outcome is
// unknown was not refused.
func (s *server) refused(c captureCall, item memory.Capture, body []byte, malformed bool, err error) error {
	e := asError(api.CutShort(err))
	if s.Rejecter == nil || e.Code == memory.CodeOutcomeUnknown {
		return err
	}
	s.Rejecter.Reject(api.Refused(c.namespace, cmp.Or(item.Agent, c.actor), "rest", body, malformed, e))
	return err
}
