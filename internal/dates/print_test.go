package dates

import (
	"fmt"
	"time"
)

var grainNames = [...]string{"day", "week", "month", "year"}

func (g Grain) String() string { return name(grainNames[:], int(g)) }

var relationNames = [...]string{"on", "around", "before", "until", "after", "since"}

func (r Relation) String() string { return name(relationNames[:], int(r)) }

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprint(i)
}

// String writes an expression for tests and logs, for example
// "[2023-05-01 2023-06-01) month around yearly 0.90".
func (e Expr) String() string {
	s := e.Range.String() + " " + e.Grain.String()
	if e.Relation != On {
		s += " " + e.Relation.String()
	}
	if e.Yearly {
		s += " yearly"
	}
	return fmt.Sprintf("%s %.2f", s, e.Confidence)
}

func (r Range) String() string {
	return "[" + r.From.Format(time.DateOnly) + " " + r.To.Format(time.DateOnly) + ")"
}
