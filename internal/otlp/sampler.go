package otlp

import (
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"mneme/internal/spans"
)

// sampler decides which requests are recorded. One whose caller says is recorded as it says;
// of the others, a share.
type sampler struct {
	share    atomic.Pointer[sdk.Sampler]
	asked    perSecond
	declined atomic.Uint64
}

func newSampler(share float64) *sampler {
	s := &sampler{asked: perSecond{most: maxAsked}}
	s.setShare(share)
	return s
}

func (s *sampler) setShare(share float64) {
	of := sdk.TraceIDRatioBased(share)
	s.share.Store(&of)
}

// rule is the sampler of requests: what its parent says where it has one.
func (s *sampler) rule() sdk.Sampler {
	return sdk.ParentBased(byShare{s}, sdk.WithRemoteParentSampled(byWish{s}))
}

// byShare records a share of the requests. It goes by the trace id, as every service does.
type byShare struct{ *sampler }

func (s byShare) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	return (*s.share.Load()).ShouldSample(p)
}

func (s byShare) Description() string { return "MnemeShare" }

// byWish records what callers ask for, so many times a second, and nothing beyond that: whoever
// chooses the ids of traces would always be among the share. What another node asks for was
// counted there.
type byWish struct{ *sampler }

func (s byWish) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if p.Name == spans.Forwarded || s.asked.take(time.Now()) {
		return sdk.AlwaysSample().ShouldSample(p)
	}
	s.declined.Add(1)
	return sdk.NeverSample().ShouldSample(p)
}

func (s byWish) Description() string { return "MnemeWish" }

// perSecond lets so many through in each second.
type perSecond struct {
	most int

	mu     sync.Mutex
	second time.Time // when it began
	taken  int       // in it
}

func (l *perSecond) take(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.second) >= time.Second {
		l.second, l.taken = now, 0
	}
	l.taken++
	return l.taken <= l.most
}
