package loader

import (
	"context"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// flight is a batch on its way.
type flight struct {
	items    []importer.Item // all of one namespace
	order    map[string]bool // the conversations, of which none overtakes another batch
	answered chan answer     // holds one
}

// answer is what came of a request.
type answer struct {
	resp memory.CaptureResponse
	err  error
}

func newFlight(items []importer.Item) *flight {
	f := &flight{items: items, order: map[string]bool{}, answered: make(chan answer, 1)}
	for i := range items {
		if conversation, ordered := orderOf(&items[i].Capture); ordered {
			f.order[conversation] = true
		}
	}
	return f
}

func bytesOf(item *importer.Item) int { return len(item.Capture.Text) + len(item.Capture.Metadata) }

// orderOf is the conversation in which a memory has its place by the order in which it comes.
// That of what stands alone and happened at a known time is told by that time.
func orderOf(c *memory.Capture) (conversation string, ordered bool) {
	return c.Conversation, c.Conversation != "" || c.OccurredAt == nil
}

// wholeConversations is how many items of a full batch end with a conversation, so that the next
// batch does not go on with it and may be on its way at the same time.
func wholeConversations(items []importer.Item) int {
	last := items[len(items)-1].Capture.Conversation
	n := len(items)
	for n > 0 && items[n-1].Capture.Conversation == last {
		n--
	}
	if n == 0 || last == "" {
		return len(items)
	}
	return n
}

// dispatch sends the first n items of the batch on their way.
func (s *sender) dispatch(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	if err := s.prepare(ctx, s.batch[0].Namespace); err != nil {
		return err
	}
	f := newFlight(s.batch[:n:n])
	for i := range f.items {
		s.bytes -= bytesOf(&f.items[i])
	}
	s.batch = append([]importer.Item(nil), s.batch[n:]...)
	for len(s.flights) == maxFlights || s.overtakes(f) {
		if err := s.receive(ctx); err != nil {
			return err
		}
	}
	go func() { f.answered <- s.request(ctx, f.items) }() // receive and abandon wait for it
	s.flights = append(s.flights, f)
	return nil
}

// overtakes reports whether a batch goes on with a conversation of one that is on its way.
func (s *sender) overtakes(f *flight) bool {
	for _, before := range s.flights {
		for conversation := range f.order {
			if before.order[conversation] {
				return true
			}
		}
	}
	return false
}

// flush sends the batch, and waits for all that is on its way.
func (s *sender) flush(ctx context.Context) error {
	if err := s.dispatch(ctx, len(s.batch)); err != nil {
		return err
	}
	for len(s.flights) > 0 {
		if err := s.receive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// receive waits for the oldest batch on its way, and sends what the node was too busy for again.
func (s *sender) receive(ctx context.Context) error {
	f := s.flights[0]
	s.flights = s.flights[1:]
	got := <-f.answered
	for attempt := 1; ; attempt++ {
		left, err := s.arrived(ctx, f.items, got)
		if len(left) == 0 || !memory.CodeOf(err).Transient() || attempt == maxAttempts {
			return decided(err)
		}
		if err := s.load.opt.Sleep(ctx, max(pause<<(attempt-1), memory.AsError(err).RetryAfter)); err != nil {
			return interrupted(err)
		}
		f.items = left
		got = s.request(ctx, left)
	}
}

// abandon waits, after an error, for what is on its way, and counts what of it arrived.
func (s *sender) abandon() {
	for _, f := range s.flights {
		for _, res := range (<-f.answered).resp.Results {
			if res.Error == nil {
				s.done++
			}
		}
	}
	s.flights = nil
}

func (s *sender) request(ctx context.Context, items []importer.Item) (got answer) {
	captures := make([]memory.Capture, len(items))
	for i := range items {
		captures[i] = items[i].Capture
	}
	got.resp, got.err = s.load.node.CaptureBatch(ctx, items[0].Namespace, captures, client.CaptureOptions{Origin: memory.OriginImport})
	return got
}

// arrived counts what became of items, and returns those to send again, with why.
func (s *sender) arrived(ctx context.Context, items []importer.Item, got answer) ([]importer.Item, error) {
	if got.err != nil {
		return items, got.err
	}
	var again []importer.Item
	var why *memory.ItemError // of the last of them
	counts := s.load.counts(items[0].Namespace)
	for i, res := range got.resp.Results {
		item := items[i]
		if res.Error != nil && res.Error.Code.Transient() {
			again, why = append(again, item), res.Error
			continue
		}
		counts.Found++
		if err := s.result(ctx, counts, item, res); err != nil {
			return nil, err
		}
		s.done++
	}
	s.report()
	if why != nil {
		err := memory.Errorf(why.Code, "the node did not take %s: %s", memories(len(again)), why.Detail)
		if why.Hint != "" {
			err = err.WithHint("%s", why.Hint)
		}
		return again, err
	}
	return nil, nil
}
