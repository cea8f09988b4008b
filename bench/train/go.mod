module mneme/bench/train

go 1.26.0

replace mneme => ../..

require (
	golang.org/x/sys v0.49.0
	mneme v0.0.0-00010101000000-000000000000
)

require (
	github.com/blevesearch/snowballstem v0.9.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/kljensen/snowball v0.10.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
