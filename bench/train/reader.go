package main

import (
	"bufio"
	"os"
	"strings"
)

// eachLine calls f with the fields of each line of a corpus.
func eachLine(path string, f func(kind byte, fields []string)) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 1<<20), 1<<26)
	for s.Scan() {
		if fields := strings.Split(s.Text(), "\t"); len(fields) > 1 {
			f(fields[0][0], fields[1:])
		}
	}
	return s.Err()
}

// lines returns the fields of the lines of one kind.
func lines(path string, kind byte) ([][]string, error) {
	var out [][]string
	err := eachLine(path, func(k byte, fields []string) {
		if k == kind {
			out = append(out, fields)
		}
	})
	return out, err
}
