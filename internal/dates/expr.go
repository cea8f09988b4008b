package dates

import "time"

// Grain is the precision of an expression.
type Grain uint8

// The grains, from fine to coarse.
const (
	GrainDay   Grain = iota // one day, or a weekend's two
	GrainWeek               // about a week
	GrainMonth              // about a month
	GrainYear               // about a year
)

// Relation says where the time that is meant lies from the range that is named.
type Relation uint8

// The relations.
const (
	On     Relation = iota // in the range
	Around                 // in or near the range
	Before                 // before From
	Until                  // before To
	After                  // at or after To
	Since                  // at or after From
)

// Range is a half-open range of time.
type Range struct{ From, To time.Time }

// Expr is one expression of time in a text.
type Expr struct {
	// Start and End are byte offsets. Words that change the relation ("before")
	// belong to the expression, "in", "on" and "at" do not.
	Start, End int
	// Range is what is named, in the zone of the reference. Without a year it is the
	// latest that has begun.
	Range
	Grain    Grain
	Relation Relation
	// Yearly says that the date has no year: that of another year may be meant.
	Yearly bool
	// Confidence in 0..1 that this is a date and that Range is what it means.
	// Below 0.5 the words often mean something else.
	Confidence float64
}

// Window returns the range in which the time that is meant lies: Range for most
// relations, else open to the year 1000 or 3000.
func (e Expr) Window() Range {
	w, loc := e.Range, e.From.Location()
	switch e.Relation {
	case Before:
		w = Range{time.Date(minYear, 1, 1, 0, 0, 0, 0, loc), e.From}
	case Until:
		w = Range{time.Date(minYear, 1, 1, 0, 0, 0, 0, loc), e.To}
	case After:
		w = Range{e.To, time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, loc)}
	case Since:
		w = Range{e.From, time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, loc)}
	}
	return w
}
