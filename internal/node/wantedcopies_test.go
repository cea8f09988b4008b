package node

import "testing"

// A log bears as many losses as the nodes that have a vote. Nothing is copied, nor thrown
// away, while one of five or of three nodes is replaced.
func TestLogHasAsManyCopiesAsNodesCallFor(t *testing.T) {
	for _, c := range []struct{ voters, have, want int }{
		{3, 3, 3}, {4, 3, 3}, {5, 3, 5}, {6, 5, 5}, {7, 5, 5}, // nodes join
		{5, 5, 5}, {4, 5, 5}, {3, 5, 3}, // nodes are removed
		{2, 3, 3}, {1, 3, 3}, {1, 5, 5}, // founding, or one of three is replaced
		{5, 0, 5}, {4, 0, 3}, {3, 0, 3}, {2, 0, 3}, {0, 0, 3}, // a new stream, or nobody knows
	} {
		if got := wantedCopies(c.voters, c.have); got != c.want {
			t.Errorf("%d nodes whose log has %d copies: %d, want %d", c.voters, c.have, got, c.want)
		}
	}
}
