package sourcetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/internal/minidb"
	"weir.dev/weir/pkg/rows"
)

// fakeDB is a database in memory whose transactions become visible some time after they are logged.
type fakeDB struct {
	mu      sync.Mutex
	db      *minidb.DB
	tables  []*fakeTable
	changed chan struct{} // closed when the log or visibility changes
	killed  int           // connections of an earlier count are dead
}

type fakeTable struct {
	number int
	id     rows.TableID
	kind   KeyKind
	schema *rows.Schema
	vals   map[uint64]int64 // by the value of minidb, which makes its own
	byKey  map[string]int   // n by the text of its key
}

func newFakeDB() *fakeDB {
	return &fakeDB{db: minidb.New(0), changed: make(chan struct{})}
}

func (d *fakeDB) change() {
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *fakeDB) Create(_ context.Context, name string, kind KeyKind, content []Row) (rows.TableID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &fakeTable{number: len(d.tables), id: rows.TableID("fake." + name), kind: kind, vals: make(map[uint64]int64), byKey: make(map[string]int)}
	var err error
	if t.schema, err = rows.NewSchema(t.id, 1, "", columnsOf(kind)); err != nil {
		return "", err
	}
	d.tables = append(d.tables, t)
	d.db.Rows = append(d.db.Rows, make(map[int]uint64))
	tx := d.db.Begin()
	for _, r := range content {
		if !d.write(tx, t, minidb.Change{Op: minidb.Insert, New: int(r.N)}, r.Val) {
			return "", fmt.Errorf("insert row %d", r.N)
		}
	}
	d.db.Commit(tx)
	d.db.Show(tx)
	return t.id, nil
}

func (d *fakeDB) write(tx *minidb.Txn, t *fakeTable, c minidb.Change, val int64) bool {
	c.Table = t.number
	if !d.db.Write(tx, c) {
		return false
	}
	last := tx.Changes[len(tx.Changes)-1]
	t.vals[last.After] = val
	t.byKey[t.text(last.New)] = last.New
	return true
}

func (d *fakeDB) table(id rows.TableID) *fakeTable {
	i := slices.IndexFunc(d.tables, func(t *fakeTable) bool { return t.id == id })
	return d.tables[i]
}

func (d *fakeDB) Read(_ context.Context, id rows.TableID) (map[int64]int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.table(id)
	all := make(map[int64]int64)
	for n, v := range d.db.Rows[t.number] {
		all[int64(n)] = t.vals[v]
	}
	return all, nil
}

func (d *fakeDB) Kill(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.killed++
	d.change()
	return nil
}

func (d *fakeDB) Begin(context.Context) (Tx, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &fakeTx{d, d.db.Begin()}, nil
}

type fakeTx struct {
	d  *fakeDB
	tx *minidb.Txn
}

func (x *fakeTx) do(id rows.TableID, c minidb.Change, val int64) error {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	if !x.d.write(x.tx, x.d.table(id), c, val) {
		return fmt.Errorf("table %s does not take %+v", id, c)
	}
	return nil
}

func (x *fakeTx) Insert(_ context.Context, id rows.TableID, r Row) error {
	return x.do(id, minidb.Change{Op: minidb.Insert, New: int(r.N)}, r.Val)
}

func (x *fakeTx) Update(_ context.Context, id rows.TableID, r Row) error {
	return x.do(id, minidb.Change{Op: minidb.Update, Old: int(r.N), New: int(r.N)}, r.Val)
}

func (x *fakeTx) Move(_ context.Context, id rows.TableID, n int64, to Row) error {
	return x.do(id, minidb.Change{Op: minidb.Update, Old: int(n), New: int(to.N)}, to.Val)
}

func (x *fakeTx) Delete(_ context.Context, id rows.TableID, n int64) error {
	return x.do(id, minidb.Change{Op: minidb.Delete, Old: int(n)}, 0)
}

// Commit logs the transaction, and shows it when others have had their turn.
func (x *fakeTx) Commit(context.Context) error {
	x.d.mu.Lock()
	x.d.db.Commit(x.tx)
	x.d.change()
	x.d.mu.Unlock()
	for range 1 + x.tx.XID%64 {
		runtime.Gosched()
	}
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	x.d.db.Show(x.tx)
	x.d.change()
	return nil
}

// Rollback ends the transaction without a trace: one without changes is logged in its place.
func (x *fakeTx) Rollback(ctx context.Context) error {
	x.d.mu.Lock()
	x.tx.Changes = nil
	x.d.mu.Unlock()
	return x.Commit(ctx)
}

func columnsOf(kind KeyKind) []rows.Column {
	var key []rows.Column
	switch kind {
	case IntegerKey:
		key = []rows.Column{{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1}}
	case CompositeKey:
		key = []rows.Column{{Name: "a", Type: rows.Of(rows.KindInt64), KeyPos: 1}, {Name: "b", Type: rows.Of(rows.KindInt64), KeyPos: 2}}
	case TextKey, UUIDKey:
		key = []rows.Column{{Name: "id", Type: rows.Of(rows.KindText), KeyPos: 1}}
	case NoKey:
	}
	return append(key, rows.Column{Name: "n", Type: rows.Of(rows.KindInt64)}, rows.Column{Name: "val", Type: rows.Of(rows.KindInt64)})
}

// key is the key of row n in the form of pkg/cdc.
func (t *fakeTable) key(n int) cdc.Key {
	switch t.kind {
	case IntegerKey:
		return cdc.Key{cdc.AppendInt(nil, int64(n))}
	case CompositeKey:
		return cdc.Key{cdc.AppendInt(nil, int64(n%7)), cdc.AppendInt(nil, int64(n/7))}
	case TextKey:
		return cdc.Key{fmt.Appendf(nil, "%c%05d", "aBcDe"[n%5], n)}
	case UUIDKey:
		sum := sha256.Sum256(fmt.Append(nil, n))
		return cdc.Key{sum[:16]}
	case NoKey:
	}
	return nil
}

func (t *fakeTable) text(n int) string { return fmt.Sprintf("%q", t.key(n)) }

// compare is the order of the database: that of text is blind to case.
func (t *fakeTable) compare(a, b int) int {
	switch x, y := t.key(a), t.key(b); t.kind {
	case NoKey:
		return cmp.Compare(a, b)
	case TextKey:
		return cmp.Compare(strings.ToLower(string(x[0])), strings.ToLower(string(y[0])))
	case IntegerKey, CompositeKey, UUIDKey:
		return (cdc.Bytewise{}).Compare(x, y)
	}
	return 0
}

// bound is the row that has a key.
func (t *fakeTable) bound(k cdc.Key) int { return t.byKey[fmt.Sprintf("%q", k)] }

func (t *fakeTable) in(n int, c cdc.Chunk) bool {
	return (c.Low == nil || t.compare(t.bound(c.Low), n) <= 0) && (c.High == nil || t.compare(n, t.bound(c.High)) < 0)
}
