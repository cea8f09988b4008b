package query

import "sync"

// beside has another goroutine do a piece of work, unless whoever asks for its result comes first and
// does it: a search never waits for a goroutine that found no processor. A panic is that of who
// asks. What the work uses is its own until it was asked for.
func beside[T any](do func() (T, error)) (result func() (T, error)) {
	result = sync.OnceValues(do)
	go ask(result)
	return result
}

// ask leaves errors and panics to who asks again.
func ask[T any](result func() (T, error)) {
	defer func() { _ = recover() }()
	_, _ = result()
}
