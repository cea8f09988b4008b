package texts

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const ftsBatch = 1000

// fts5 is SQLite's full-text table, in the translation to Go, without the texts, ranked by
// its bm25().
type fts5 struct {
	dir string
	db  *sql.DB
	ask *sql.Stmt
}

func newFTS5(dir string) engine { return &fts5{dir: dir} }

func (f *fts5) connect() (err error) {
	f.db, err = sql.Open("sqlite", filepath.Join(f.dir, "fts.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=cache_size(-163840)")
	if err == nil {
		f.db.SetMaxOpenConns(1)
	}
	return err
}

func (f *fts5) build(ctx context.Context, docs documents) (err error) {
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return err
	}
	if err := f.connect(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.db.Close()) }()
	if _, err := f.db.ExecContext(ctx, `CREATE VIRTUAL TABLE d USING fts5(t, content='', tokenize='ascii')`); err != nil {
		return err
	}
	for at := 0; at < len(docs.lines); at += ftsBatch {
		if err := f.insert(ctx, docs.lines, at, min(at+ftsBatch, len(docs.lines))); err != nil {
			return err
		}
	}
	return nil
}

func (f *fts5) insert(ctx context.Context, lines []string, from, to int) error {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	add, err := tx.PrepareContext(ctx, `INSERT INTO d(rowid, t) VALUES(?, ?)`)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	for i := from; i < to; i++ {
		if _, err := add.ExecContext(ctx, i+1, lines[i]); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return errors.Join(add.Close(), tx.Commit())
}

func (f *fts5) open() (err error) {
	if err := f.connect(); err != nil {
		return err
	}
	// rank is bm25() under the name that lets the table sort by itself.
	f.ask, err = f.db.Prepare(`SELECT rowid - 1, -rank FROM d WHERE d MATCH ? ORDER BY rank LIMIT ?`)
	return err
}

func (f *fts5) search(ctx context.Context, terms []string, k int) (hits []hit, err error) {
	// A context that can end costs the driver a goroutine for each query.
	rows, err := f.ask.QueryContext(context.WithoutCancel(ctx), `"`+strings.Join(terms, `" OR "`)+`"`, k)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var h hit
		if err := rows.Scan(&h.doc, &h.score); err != nil {
			return nil, err
		}
		hits = append(hits, h)
	}
	return hits, rows.Err()
}

func (f *fts5) close() error { return errors.Join(f.ask.Close(), f.db.Close()) }
