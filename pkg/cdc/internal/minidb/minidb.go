// Package minidb is a database of a few rows whose log and visibility are steps of their own.
//
// Role: tests of pkg/cdc and its suite read and write it in every order that a real server could show: a transaction is
// begun, is put into the log, and becomes visible to readers only some time after that.
//
// Invariants: rows written by a transaction are locked until it is visible; the log is in the order of commits; every value
// ever written is unique.
//
// Failure: none; it is a value without I/O, used by one goroutine.
//
// Source: PostgreSQL's commit sequence (commit record, wait for standbys, removal from the array of running transactions).
package minidb

import (
	"maps"
	"slices"
)

// Op is what a change does.
type Op uint8

// The operations. An update whose keys differ moves the row.
const (
	Insert Op = iota + 1
	Update
	Delete
	Truncate
)

// Change is one row changed. Before and After are values of the row, zero where there is none.
type Change struct {
	Table         int
	Op            Op
	Old, New      int
	Before, After uint64
}

// Txn is a transaction.
type Txn struct {
	// XID is given when the transaction begins, so it is not in the order of commits.
	XID     uint64
	Changes []Change
	own     map[place]uint64 // as the transaction sees them; 0 is no row
	wiped   map[int]bool
}

// place is a key of a table, or with all a table.
type place struct {
	table, key int
	all        bool
}

// DB is a database.
type DB struct {
	// Rows are the visible rows: by table, by key.
	Rows []map[int]uint64
	// Log holds the transactions in the order of their commits.
	Log []*Txn
	// Open are transactions that write, Unseen those that are in the log and not visible.
	Open, Unseen []*Txn

	xid   uint64
	value uint64
	locks map[place]*Txn
}

// New makes a database of empty tables.
func New(tables int) *DB {
	d := &DB{xid: 1, locks: make(map[place]*Txn)}
	for range tables {
		d.Rows = append(d.Rows, make(map[int]uint64))
	}
	return d
}

// Begin begins a transaction.
func (d *DB) Begin() *Txn {
	t := &Txn{XID: d.xid, own: make(map[place]uint64), wiped: make(map[int]bool)}
	d.xid++
	d.Open = append(d.Open, t)
	return t
}

// Write makes a change, of which table, operation and keys are given. False means that a lock or the rows do not allow it.
func (d *DB) Write(t *Txn, c Change) bool {
	if c.Op == Truncate {
		return d.truncate(t, c)
	}
	if c.Op == Insert {
		c.Old = c.New
	}
	if c.Op == Delete {
		c.New = c.Old
	}
	if !d.free(t, c.Table, c.Old) || !d.free(t, c.Table, c.New) {
		return false
	}
	c.Before = d.see(t, c.Table, c.Old)
	if (c.Op == Insert) != (c.Before == 0) || (c.Old != c.New && d.see(t, c.Table, c.New) != 0) {
		return false
	}
	if c.Op != Delete {
		d.value++
		c.After = d.value
	}
	for _, k := range []int{c.Old, c.New} {
		d.locks[place{table: c.Table, key: k}] = t
	}
	t.own[place{table: c.Table, key: c.Old}] = 0
	t.own[place{table: c.Table, key: c.New}] = c.After
	t.Changes = append(t.Changes, c)
	return true
}

func (d *DB) truncate(t *Txn, c Change) bool {
	for p, holder := range d.locks {
		if p.table == c.Table && holder != t {
			return false
		}
	}
	d.locks[place{table: c.Table, all: true}] = t
	maps.DeleteFunc(t.own, func(p place, _ uint64) bool { return p.table == c.Table })
	t.wiped[c.Table] = true
	t.Changes = append(t.Changes, Change{Table: c.Table, Op: Truncate})
	return true
}

func (d *DB) free(t *Txn, table, key int) bool {
	for _, p := range []place{{table: table, key: key}, {table: table, all: true}} {
		if holder := d.locks[p]; holder != nil && holder != t {
			return false
		}
	}
	return true
}

// see is a row as the transaction sees it.
func (d *DB) see(t *Txn, table, key int) uint64 {
	if v, ok := t.own[place{table: table, key: key}]; ok {
		return v
	}
	if t.wiped[table] {
		return 0
	}
	return d.Rows[table][key]
}

// Commit puts a transaction into the log.
func (d *DB) Commit(t *Txn) {
	d.Open = remove(d.Open, t)
	d.Log = append(d.Log, t)
	d.Unseen = append(d.Unseen, t)
}

// Show makes a transaction of the log visible and lets its locks go.
func (d *DB) Show(t *Txn) {
	d.Unseen = remove(d.Unseen, t)
	Apply(d.Rows, t.Changes)
	maps.DeleteFunc(d.locks, func(_ place, holder *Txn) bool { return holder == t })
}

// Apply makes changes to rows.
func Apply(rows []map[int]uint64, changes []Change) {
	for _, c := range changes {
		switch c.Op {
		case Truncate:
			clear(rows[c.Table])
		case Delete:
			delete(rows[c.Table], c.Old)
		default:
			delete(rows[c.Table], c.Old)
			rows[c.Table][c.New] = c.After
		}
	}
}

func remove(all []*Txn, t *Txn) []*Txn {
	return slices.DeleteFunc(slices.Clone(all), func(o *Txn) bool { return o == t })
}

// Running lists the ids of transactions that are not visible, sorted, and the next id.
func (d *DB) Running() (running []uint64, next uint64) {
	for _, t := range slices.Concat(d.Open, d.Unseen) {
		running = append(running, t.XID)
	}
	slices.Sort(running)
	return running, d.xid
}
