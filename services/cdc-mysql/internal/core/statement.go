package core

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Name is a table by its database.
type Name struct{ Schema, Table string }

// String is database.table.
func (n Name) String() string { return n.Schema + "." + n.Table }

// Quoted is the name as SQL.
func (n Name) Quoted() string { return Quote(n.Schema) + "." + Quote(n.Table) }

// Quote makes an identifier of SQL.
func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// StatementKind is what a statement in the log does to tables as wholes.
type StatementKind uint8

// The kinds.
const (
	// Other statements do nothing to the rows of tables that the log does not show otherwise.
	Other StatementKind = iota
	Begin
	Commit
	Rollback
	// Truncate empties Tables.
	Truncate
	// Remove takes Tables away: they were dropped, or have another name now.
	Remove
	// RemoveSchema takes all tables of a database away.
	RemoveSchema
	// XABegin and XAEnd are what stands around the rows of a distributed transaction, XAOutcome decides about one that was
	// prepared.
	XABegin
	XAEnd
	XAOutcome
)

// Statement is a statement of the log as far as it matters.
type Statement struct {
	Kind   StatementKind
	Tables []Name
	Schema string
	// XID names the transaction that an XAOutcome decides about, as [XID] writes it, and Committed is the decision.
	XID       string
	Committed bool
}

// Classify reads a statement of the log; schema is the session's default database.
func Classify(sql, schema string) Statement {
	s := scanner{text: sql}
	switch first := s.word(); first {
	case "BEGIN":
		return Statement{Kind: Begin}
	case "COMMIT":
		return Statement{Kind: Commit}
	case "ROLLBACK":
		if s.word() == "TO" {
			return Statement{}
		}
		return Statement{Kind: Rollback}
	case "XA":
		switch s.word() {
		case "START", "BEGIN":
			return Statement{Kind: XABegin}
		case "END", "PREPARE":
			return Statement{Kind: XAEnd}
		case "COMMIT":
			return Statement{Kind: XAOutcome, XID: s.xid(), Committed: true}
		}
		return Statement{Kind: XAOutcome, XID: s.xid()}
	case "TRUNCATE":
		s.skip("TABLE")
		return Statement{Kind: Truncate, Tables: s.tables(schema)}
	case "DROP":
		return dropped(&s, schema)
	case "RENAME":
		s.word() // TABLE
		return Statement{Kind: Remove, Tables: s.renamed(schema)}
	case "ALTER":
		return altered(&s, schema)
	}
	return Statement{}
}

func dropped(s *scanner, schema string) Statement {
	switch s.word() {
	case "TABLE", "TABLES":
		s.skip("IF")
		s.skip("EXISTS")
		return Statement{Kind: Remove, Tables: s.tables(schema)}
	case "DATABASE", "SCHEMA":
		s.skip("IF")
		s.skip("EXISTS")
		name, _ := s.name()
		return Statement{Kind: RemoveSchema, Schema: name}
	}
	return Statement{} // TEMPORARY tables are not captured
}

// altered finds ALTER TABLE t ... RENAME [TO|AS] u. Renames of columns and indexes have another word behind theirs.
func altered(s *scanner, schema string) Statement {
	for _, w := range []string{"ONLINE", "OFFLINE", "IGNORE"} {
		s.skip(w)
	}
	if s.word() != "TABLE" {
		return Statement{}
	}
	s.skip("IF")
	s.skip("EXISTS")
	t, ok := s.table(schema)
	if !ok {
		return Statement{}
	}
	truncates := false
	for !s.end() {
		switch w := s.word(); w {
		case "RENAME":
			switch s.peek() {
			case "COLUMN", "INDEX", "KEY":
			default:
				return Statement{Kind: Remove, Tables: []Name{t}}
			}
		case "TRUNCATE", "EXCHANGE": // of partitions
			truncates = s.peek() == "PARTITION"
		case "DROP":
			truncates = truncates || s.peek() == "PARTITION"
		}
	}
	if truncates { // some rows are gone, and the log does not say which
		return Statement{Kind: Remove, Tables: []Name{t}}
	}
	return Statement{}
}

// scanner reads words and names of SQL.
type scanner struct{ text string }

// space skips blanks and comments. What stands in a comment for one kind of server is read as if it were none.
func (s *scanner) space() {
	for s.text != "" {
		switch {
		case strings.ContainsRune(" \t\r\n\f\v\x00", rune(s.text[0])):
			s.text = s.text[1:]
		case strings.HasPrefix(s.text, "/*!"), strings.HasPrefix(s.text, "/*M!"):
			s.text = strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(s.text, "/*M!"), "/*!"), "0123456789")
		case strings.HasPrefix(s.text, "*/"):
			s.text = s.text[2:]
		case strings.HasPrefix(s.text, "/*"):
			_, s.text, _ = strings.Cut(s.text[2:], "*/")
		case s.text[0] == '#', strings.HasPrefix(s.text, "-- "):
			_, s.text, _ = strings.Cut(s.text, "\n")
		default:
			return
		}
	}
}

func (s *scanner) end() bool {
	s.space()
	return s.text == ""
}

// word takes the next token: a word in capitals, or one letter that is none; texts and quoted names are skipped as one.
func (s *scanner) word() string {
	if s.end() {
		return ""
	}
	if c := s.text[0]; c == '`' || c == '\'' || c == '"' {
		s.quoted()
		return ""
	}
	n := 0
	for n < len(s.text) && isLetter(s.text[n]) {
		n++
	}
	n = max(n, 1)
	w := s.text[:n]
	s.text = s.text[n:]
	return strings.ToUpper(w)
}

func (s *scanner) peek() string {
	at := *s
	return at.word()
}

func (s *scanner) skip(word string) {
	if s.peek() == word {
		s.word()
	}
}

func isLetter(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
}

// quoted takes a text in quotes; a quote in it stands twice, or behind a backslash in texts.
func (s *scanner) quoted() string {
	quote := s.text[0]
	var b strings.Builder
	for i := 1; i < len(s.text); i++ {
		c := s.text[i]
		switch {
		case c == '\\' && quote != '`' && i+1 < len(s.text):
			i++
			b.WriteByte(s.text[i])
		case c != quote:
			b.WriteByte(c)
		case i+1 < len(s.text) && s.text[i+1] == quote:
			i++
			b.WriteByte(c)
		default:
			s.text = s.text[i+1:]
			return b.String()
		}
	}
	s.text = ""
	return b.String()
}

func (s *scanner) name() (string, bool) {
	if s.end() {
		return "", false
	}
	if s.text[0] == '`' || s.text[0] == '"' { // ANSI_QUOTES
		return s.quoted(), true
	}
	n := 0
	for n < len(s.text) && isLetter(s.text[n]) {
		n++
	}
	w := s.text[:n]
	s.text = s.text[n:]
	return w, n > 0
}

func (s *scanner) table(schema string) (Name, bool) {
	first, ok := s.name()
	if !ok {
		return Name{}, false
	}
	s.space()
	if !strings.HasPrefix(s.text, ".") {
		return Name{schema, first}, true
	}
	s.text = s.text[1:]
	second, ok := s.name()
	return Name{first, second}, ok
}

func (s *scanner) comma() bool {
	s.space()
	if !strings.HasPrefix(s.text, ",") {
		return false
	}
	s.text = s.text[1:]
	return true
}

func (s *scanner) tables(schema string) (all []Name) {
	for {
		t, ok := s.table(schema)
		if !ok {
			return all
		}
		all = append(all, t)
		if !s.comma() {
			return all
		}
	}
}

// renamed lists the old names, and the new ones: a table that comes under a captured name is another table. One whose place was
// taken by the copy that a tool for schema changes had made of it is the same table with other columns.
func (s *scanner) renamed(schema string) (all []Name) {
	type rename struct{ from, to Name }
	var renames []rename
	for {
		from, ok := s.table(schema)
		if !ok {
			break
		}
		s.skip("TO")
		to, _ := s.table(schema)
		renames = append(renames, rename{from, to})
		if !s.comma() {
			break
		}
	}
	same := func(n Name) bool {
		return slices.ContainsFunc(renames, func(r rename) bool { return r.from == n && setAside.is(n, r.to) }) &&
			slices.ContainsFunc(renames, func(r rename) bool { return r.to == n && shadow.is(n, r.from) })
	}
	for _, r := range renames {
		for _, n := range []Name{r.from, r.to} {
			if !same(n) {
				all = append(all, n)
			}
		}
	}
	return all
}

// toolName is how gh-ost, pt-online-schema-change and spirit call a table that they make beside another one: underscores, the
// table, and one of these behind it.
type toolName struct{ suffixes []string }

var (
	shadow   = toolName{[]string{"_gho", "_new"}}
	setAside = toolName{[]string{"_del", "_old"}}
)

func (t toolName) is(of, name Name) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(name.Table, "_"), strings.TrimLeft(of.Table, "_"))
	if !ok || name.Schema != of.Schema || !strings.HasPrefix(name.Table, "_") {
		return false
	}
	return slices.ContainsFunc(t.suffixes, func(suffix string) bool {
		stamp, ok := strings.CutSuffix(rest, suffix) // or with the time between
		return ok && strings.Trim(stamp, "_0123456789") == ""
	})
}

// XID is the name of a distributed transaction, in one form whoever wrote it.
func XID(global, branch []byte, format uint32) string {
	return fmt.Sprintf("%x,%x,%d", global, branch, format)
}

// xid reads the name behind XA COMMIT or XA ROLLBACK: X'global',X'branch',format, the last two of which may be missing.
func (s *scanner) xid() string {
	var parts [2][]byte
	format := uint64(1)
	for i := 0; !s.end(); i++ {
		switch {
		case i < 2 && (s.text[0] == 'X' || s.text[0] == 'x') && len(s.text) > 1 && s.text[1] == '\'':
			s.text = s.text[1:]
			parts[i], _ = hex.DecodeString(s.quoted())
		case i < 2 && (s.text[0] == '\'' || s.text[0] == '"'):
			parts[i] = []byte(s.quoted())
		case i == 2:
			format, _ = strconv.ParseUint(s.word(), 10, 32)
		}
		if !s.comma() {
			break
		}
	}
	return XID(parts[0], parts[1], uint32(format))
}
