package query

// dateRange is a time that a query means.
type dateRange struct{ from, to int64 }
