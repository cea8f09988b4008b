package importer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite" // registers the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"mneme/memory"
)

const sqliteMagic = "SQLite format 3\x00"

// memorixTables are the tables of memorix.db that hold memories, in the order in
// which they are read, and the columns that are read of them; the first one makes it a
// database of Memorix.
var memorixTables = []struct {
	name, order string
	columns     []string
}{
	{"observations", "id", []string{"id", "entityName", "type", "title", "narrative", "facts", "filesModified", "concepts", "createdAt", "updatedAt", "projectId",
		"topicKey", "sessionId", "status", "source", "commitHash", "relatedCommits", "relatedEntities", "valueCategory", "visibility", "createdByAgentId"}},
	{"sessions", "startedAt, id", []string{"id", "projectId", "startedAt", "endedAt", "summary", "agent"}},
	{"mini_skills", "id", []string{"id", "sourceEntity", "title", "instruction", "trigger", "trigger_desc", "facts", "projectId", "createdAt", "tags"}},
	{"graph_entities", "name", []string{"name", "entityType", "observations"}},
	{"graph_relations", "id", []string{"id", "from_entity", "to_entity", "relationType"}},
}

// maxSQLite bounds a value and a row of a database, also what an expression of its
// schema makes: a few bytes of schema can ask for gigabytes.
const maxSQLite = 16 << 20

// memorixLists are the columns that hold a list as JSON text.
var memorixLists = []string{"facts", "filesModified", "concepts", "relatedCommits", "relatedEntities", "tags", "observations"}

// memorixDB reads memorix.db, which stays as it is: what Memorix has not yet moved
// out of its write-ahead log is read from there.
type memorixDB struct {
	memorix
	db      *sql.DB
	conn    *sql.Conn // the one connection of db, with its limits
	ctx     context.Context
	cancel  context.CancelFunc
	has     []string // tables that are there
	next    int      // of memorixTables
	table   string   // that is being read
	rows    *sql.Rows
	columns []string
}

func openMemorixDB(path string, opts Options) (Source, error) {
	s := &memorixDB{}
	s.opts = opts
	s.memorix.fill = s.row
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.connect(path); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// connect opens the database to be read only. Where its folder cannot be written,
// so that SQLite cannot share its log with whoever writes, it is read as it lies.
func (s *memorixDB) connect(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	abs = filepath.ToSlash(abs)
	if !strings.HasPrefix(abs, "/") {
		abs = "/" + abs // a drive
	}
	for _, query := range []string{"mode=ro", "mode=ro&immutable=1"} {
		query += "&_pragma=trusted_schema(0)"
		u := url.URL{Scheme: "file", Path: abs, RawQuery: query}
		if s.db, err = sql.Open("sqlite", u.String()); err != nil {
			return damaged("memorix", err)
		}
		if err = s.limit(); err == nil {
			err = s.tables()
		}
		if err == nil {
			break
		}
		_ = s.disconnect()
	}
	if err != nil {
		return damaged("memorix", err)
	}
	if !slices.Contains(s.has, memorixTables[0].name) {
		_ = s.disconnect()
		return memory.Errorf(memory.CodeInvalid, "%s is a SQLite database, but not one of Memorix: it has no table observations", path).
			WithHint("export what it holds as CSV or JSON lines, and import that")
	}
	return nil
}

// limit takes the connection that everything is read by, and bounds what it makes.
func (s *memorixDB) limit() (err error) {
	if s.conn, err = s.db.Conn(s.ctx); err != nil {
		return err
	}
	_, err = sqlite.Limit(s.conn, sqlite3.SQLITE_LIMIT_LENGTH, maxSQLite)
	return err
}

func (s *memorixDB) disconnect() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
		s.conn = nil
	}
	return errors.Join(err, s.db.Close())
}

func (s *memorixDB) tables() (err error) {
	s.has, err = s.names("SELECT name FROM sqlite_master WHERE type = 'table'")
	return err
}

// names returns the one column of a query.
func (s *memorixDB) names(query string, args ...any) ([]string, error) {
	rows, err := s.conn.QueryContext(s.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

// query reads what is stored of a table's columns that are known; one that is computed
// is not.
func (s *memorixDB) query(table, order string, known []string) (*sql.Rows, error) {
	there, err := s.names("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", table)
	if err != nil {
		return nil, err
	}
	s.columns = nil
	for _, name := range known {
		if slices.ContainsFunc(there, func(is string) bool { return strings.EqualFold(is, name) }) {
			s.columns = append(s.columns, name)
		}
	}
	if len(s.columns) == 0 {
		return nil, errors.New("it has none of the columns of Memorix")
	}
	return s.conn.QueryContext(s.ctx, `SELECT "`+strings.Join(s.columns, `", "`)+`" FROM `+table+" ORDER BY "+order)
}

// row reads one row into the queue. A table that is damaged is told and left where
// it broke; the others are read.
func (s *memorixDB) row() error {
	if s.rows == nil {
		return s.begin()
	}
	if !s.rows.Next() {
		err := errors.Join(s.rows.Err(), s.rows.Close())
		s.rows = nil
		if err != nil {
			s.bad(s.n, s.where(), fmt.Errorf("the rest of the table cannot be read: %w", err))
		}
		return nil
	}
	s.n++
	raw, err := s.scan()
	if err == nil {
		err = s.take(raw)
	}
	if err != nil {
		s.bad(s.n, s.where(), plainJSONError(err))
	}
	return nil
}

func (s *memorixDB) where() string { return fmt.Sprintf("%s row %d", s.table, s.n) }

// begin starts to read the next table that is there.
func (s *memorixDB) begin() error {
	for s.next < len(memorixTables) {
		t := memorixTables[s.next]
		s.next++
		if !slices.Contains(s.has, t.name) {
			continue
		}
		s.table, s.n = t.name, 0
		rows, err := s.query(t.name, t.order, t.columns)
		if err != nil {
			s.bad(0, t.name, fmt.Errorf("the table cannot be read: %w", err))
			continue
		}
		s.rows = rows
		return nil
	}
	return io.EOF
}

// scan makes a JSON object of the row, as Memorix writes it into files.
func (s *memorixDB) scan() (json.RawMessage, error) {
	values := make([]any, len(s.columns))
	into := make([]any, len(values))
	for i := range values {
		into[i] = &values[i]
	}
	if err := s.rows.Scan(into...); err != nil {
		return nil, err
	}
	row := make(map[string]any, len(values))
	for i, name := range s.columns {
		v := values[i]
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		text, isText := v.(string)
		if isText && strings.ToValidUTF8(text, "") != text {
			return nil, notUTF8([]byte(text))
		}
		if isText && slices.Contains(memorixLists, name) {
			if text == "" {
				continue
			}
			var list []string
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				return nil, fmt.Errorf("column %s holds no list: %.60q", name, text)
			}
			v = list
		}
		row[name] = v
	}
	return json.Marshal(row)
}

// take queues what a row of the present table says.
func (s *memorixDB) take(raw json.RawMessage) error {
	switch s.table {
	case "graph_entities":
		var e struct {
			Name         string
			EntityType   string
			Observations []string
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		s.entries = append(s.entries, entry{item: Item{Namespace: s.opts.Namespace, Line: s.n, Where: s.where(),
			Entity: &Entity{Name: e.Name, Type: e.EntityType, Observations: e.Observations}}})
	case "graph_relations":
		var r struct {
			From string `json:"from_entity"`
			To   string `json:"to_entity"`
			Type string `json:"relationType"`
		}
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		s.entries = append(s.entries, entry{item: Item{Namespace: s.opts.Namespace, Line: s.n, Where: s.where(),
			Relation: &Relation{From: r.From, To: r.To, Type: r.Type}}})
	case "mini_skills":
		return s.element("skills", raw, s.where())
	default:
		return s.element(s.table, raw, s.where())
	}
	return nil
}

// Close closes the database.
func (s *memorixDB) Close() error {
	s.cancel()
	var err error
	if s.rows != nil {
		err = s.rows.Close()
		if errors.Is(err, context.Canceled) {
			err = nil
		}
	}
	return errors.Join(err, s.disconnect())
}
