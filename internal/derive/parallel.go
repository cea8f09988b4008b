package derive

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Parallel calls f for 0..n-1 on the processors there are and returns the
// first error. Small n stays in the caller's goroutine.
func Parallel(n int, f func(i int) error) error {
	workers := min(runtime.GOMAXPROCS(0), (n+7)/8)
	if workers <= 1 {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for i := w; i < n; i += workers {
				if err := f(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
