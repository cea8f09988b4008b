package embed

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/sony/gobreaker/v2"
)

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 20 * time.Second

	breakerFailures = 5                // in a row, until a provider counts as dead
	breakerOpen     = 15 * time.Second // until it is tried again
)

// pauses are the waits between attempts: full jitter, i.e. uniform in
// [0, min(longest, first·2^n)) (Brooker, "Exponential Backoff And Jitter", 2015),
// but never less than the server asked for.
type pauses struct {
	ceiling *backoff.ExponentialBackOff
	rand    func() float64
}

func newPauses(rand func() float64) *pauses {
	// The library's own jitter is around the interval and from a global source,
	// so that only its growth is used.
	c := &backoff.ExponentialBackOff{InitialInterval: firstPause, Multiplier: 2, MaxInterval: longestPause}
	c.Reset()
	return &pauses{ceiling: c, rand: rand}
}

func (p *pauses) next(atLeast time.Duration) time.Duration {
	ceiling := p.ceiling.NextBackOff()
	return max(atLeast, time.Duration(p.rand()*float64(ceiling)))
}

// retryAfterHeader returns how long the server wants to be left alone, 0 if it
// does not say: retry-after-ms, retry-after (seconds or a date), or the longest
// x-ratelimit-reset of a limit that is used up.
func retryAfterHeader(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return seconds(ms / 1000)
	}
	if after := strings.TrimSpace(h.Get("Retry-After")); after != "" {
		if s, err := strconv.ParseFloat(after, 64); err == nil {
			return seconds(s)
		}
		if at, err := http.ParseTime(after); err == nil {
			return max(0, at.Sub(now))
		}
	}
	return rateLimitReset(h, now)
}

func rateLimitReset(h http.Header, now time.Time) time.Duration {
	var usedUp, any time.Duration
	for _, suffix := range []string{"", "-Requests", "-Tokens"} {
		d := parseReset(h.Get("X-Ratelimit-Reset"+suffix), now)
		any = max(any, d)
		if strings.TrimSpace(h.Get("X-Ratelimit-Remaining"+suffix)) == "0" {
			usedUp = max(usedUp, d)
		}
	}
	if usedUp > 0 {
		return usedUp
	}
	return any
}

// parseReset reads "6m0s", "20ms", seconds, or seconds since 1970.
func parseReset(s string, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if d, err := time.ParseDuration(s); err == nil {
		return max(0, d)
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	if n > 1e9 {
		n -= float64(now.Unix())
	}
	return seconds(n)
}

// seconds is a duration of n seconds within 0 and a day; NaN is 0.
func seconds(n float64) time.Duration {
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n, 86_400) * float64(time.Second))
}

// breaker cuts a dead provider off, so that callers learn at once instead of
// after a timeout each.
type breaker struct {
	circuit *gobreaker.TwoStepCircuitBreaker[struct{}]
	until   atomic.Int64 // nanoseconds since 1970 when an open circuit is tried again
}

func newBreaker(name string) *breaker {
	b := &breaker{}
	b.circuit = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        name,
		MaxRequests: 1,
		Timeout:     breakerOpen,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerFailures },
		IsSuccessful: func(err error) bool {
			var e *Error
			return !errors.As(err, &e) || e.Kind != ErrUnavailable || e.Status == http.StatusTooManyRequests
		},
		// A caller who gave up has learned nothing about the provider.
		IsExcluded: func(err error) bool {
			var e *Error
			return err != nil && !errors.As(err, &e)
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.until.Store(time.Now().Add(breakerOpen).UnixNano())
			}
		},
	})
	return b
}

// allow returns what to call with the outcome, or how long to wait and false.
func (b *breaker) allow() (done func(error), wait time.Duration, ok bool) {
	done, err := b.circuit.Allow()
	if err == nil {
		return done, 0, true
	}
	wait = time.Until(time.Unix(0, b.until.Load()))
	// Half open: somebody else is trying right now.
	return nil, max(wait, time.Second), false
}
