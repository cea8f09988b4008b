package verbs

import (
	"context"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// importFlight is a batch on its way.
type importFlight struct {
	items []importer.Item // all of one namespace
	order map[string]bool // the conversations, of which none overtakes another batch
	sent  chan importSent // holds one
}

// importSent is what came of a request.
type importSent struct {
	resp memory.CaptureResponse
	err  error
}

func newImportFlight(items []importer.Item) *importFlight {
	f := &importFlight{items: items, order: map[string]bool{}, sent: make(chan importSent, 1)}
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
func (s *importSender) dispatch(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	if err := s.prepare(ctx, s.batch[0].Namespace); err != nil {
		return err
	}
	f := newImportFlight(s.batch[:n:n])
	for i := range f.items {
		s.bytes -= bytesOf(&f.items[i])
	}
	s.batch = append([]importer.Item(nil), s.batch[n:]...)
	for len(s.flights) == importFlights || s.overtakes(f) {
		if err := s.land(ctx); err != nil {
			return err
		}
	}
	go func() { f.sent <- s.request(ctx, f.items) }() // land and abandon wait for it
	s.flights = append(s.flights, f)
	return nil
}

// overtakes reports whether a batch goes on with a conversation of one that is on its way.
func (s *importSender) overtakes(f *importFlight) bool {
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
func (s *importSender) flush(ctx context.Context) error {
	if err := s.dispatch(ctx, len(s.batch)); err != nil {
		return err
	}
	for len(s.flights) > 0 {
		if err := s.land(ctx); err != nil {
			return err
		}
	}
	return nil
}

// land waits for the oldest batch on its way, and sends what the node was too busy for again.
func (s *importSender) land(ctx context.Context) error {
	f := s.flights[0]
	s.flights = s.flights[1:]
	sent := <-f.sent
	for attempt := 1; ; attempt++ {
		left, err := s.arrived(ctx, f.items, sent)
		switch {
		case err != nil && (!busy(memory.CodeOf(err)) || attempt == importAttempts):
			return err
		case len(left) == 0:
			return nil
		case attempt == importAttempts:
			return memory.Errorf(memory.CodeOverloaded, "the node stayed too busy for %s", count(len(left), "memory", "memories"))
		}
		pause := importPause << (attempt - 1)
		if err != nil {
			pause = max(pause, memory.AsError(err).RetryAfter)
		}
		if err := s.run.a.sys.sleep(ctx, pause); err != nil {
			return memory.Errorf(memory.CodeTimeout, "interrupted").WithCause(err)
		}
		f.items = left
		sent = s.request(ctx, left)
	}
}

// abandon waits, after an error, for what is on its way, and counts what of it arrived.
func (s *importSender) abandon() {
	for _, f := range s.flights {
		for _, res := range (<-f.sent).resp.Results {
			if res.Error == nil {
				s.done++
			}
		}
	}
	s.flights = nil
}

func (s *importSender) request(ctx context.Context, items []importer.Item) (sent importSent) {
	captures := make([]memory.Capture, len(items))
	for i := range items {
		captures[i] = items[i].Capture
	}
	sent.resp, sent.err = s.run.c.CaptureBatch(ctx, items[0].Namespace, captures, client.CaptureOptions{Origin: memory.OriginImport})
	return sent
}

// arrived counts what became of items, and returns those to send again.
func (s *importSender) arrived(ctx context.Context, items []importer.Item, sent importSent) ([]importer.Item, error) {
	if sent.err != nil {
		return items, sent.err
	}
	var again []importer.Item
	counts := s.run.summary.namespace(items[0].Namespace)
	for i, res := range sent.resp.Results {
		item := items[i]
		if res.Error != nil && busy(res.Error.Code) {
			again = append(again, item)
			continue
		}
		counts.Found++
		if err := s.result(ctx, counts, item, res); err != nil {
			return nil, err
		}
		s.done++
	}
	s.report()
	return again, nil
}
