package query

import (
	"errors"
	"testing"
)

// TestBeside: the work is done once, whoever comes first, and who asks gets what came of it.
func TestBeside(t *testing.T) {
	failed := errors.New("failed")
	for range 200 { // the goroutine comes first, or second
		times := 0
		get := beside(func() (int, error) { times++; return 7, failed })
		for range 2 {
			if n, err := get(); n != 7 || !errors.Is(err, failed) {
				t.Fatalf("got %d, %v", n, err)
			}
		}
		if times != 1 {
			t.Fatalf("it was done %d times", times)
		}
	}
}

// TestAPanicBesideIsOfWhoAsks: in a goroutine of its own it would end the node.
func TestAPanicBesideIsOfWhoAsks(t *testing.T) {
	began := make(chan struct{})
	get := beside(func() (int, error) { close(began); panic("broken") })
	<-began // by the goroutine: nobody else asked
	ask(get)
	defer func() {
		if v := recover(); v != "broken" {
			t.Errorf("recovered %v", v)
		}
	}()
	_, err := get()
	t.Errorf("no panic, and %v", err)
}
