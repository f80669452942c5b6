package generator

import (
	"fmt"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// Row is what the sequence says about one change, before its values are made.
type Row struct {
	// Index is its place among all changes of the source.
	Index int64
	Table int
	Key   int64
	Op    rows.Op
	Txn   uint64
	Ord   uint32
}

// Sequence is the pure description of all rows of a generator: which change has which index (G1).
type Sequence struct {
	cfg     spec.GeneratorSource
	readers int64
}

// NewSequence describes the rows of a source with these settings.
func NewSequence(cfg spec.GeneratorSource) Sequence {
	return Sequence{cfg: cfg, readers: int64(cfg.Readers)}
}

// Len is the number of rows that reader r makes; a negative number says that there is no end.
func (q Sequence) Len(r int) int64 {
	if q.cfg.Rows == 0 {
		return -1
	}
	return (q.cfg.Rows - int64(r) + q.readers - 1) / q.readers
}

// At is the n-th row of reader r, from 0.
func (q Sequence) At(r int, n int64) Row {
	tables, per := int64(q.cfg.Tables), int64(q.cfg.TransactionRows)
	row := Row{
		Index: n*q.readers + int64(r), Table: int(n % tables),
		Txn: uint64(n/per*q.readers+int64(r)) + 1, Ord: uint32(n % per),
	}
	if q.cfg.Keys == 0 {
		row.Key, row.Op = row.Index, rows.OpInsert
		return row
	}
	// The changes of one table go through the reader's keys in rounds; every round visits each key once, from another
	// starting point.
	own := (q.cfg.Keys - int64(r) + q.readers - 1) / q.readers
	visit := n / tables
	round, place := visit/own, visit%own
	start := int64(q.hash(uint64(round), uint64(row.Table), 1) % uint64(own))
	row.Key = (place+start)%own*q.readers + int64(r)
	row.Op = q.op(row.Table, row.Key, round)
	return row
}

// op is what the change of a key in a round does. A round whose die says delete deletes only a row that is there, so a
// run of such rounds deletes and inserts in turn.
func (q Sequence) op(table int, key, round int64) rows.Op {
	if round == 0 {
		return rows.OpInsert
	}
	run := int64(0)
	for run < round-1 && q.dies(table, key, round-1-run) {
		run++
	}
	switch {
	case run%2 == 1:
		return rows.OpInsert
	case q.dies(table, key, round):
		return rows.OpDelete
	}
	return rows.OpUpdateAfter
}

func (q Sequence) dies(table int, key, round int64) bool {
	return q.cfg.Deletes > 0 && q.hash(uint64(table)<<32|2, uint64(key), uint64(round))%100 < uint64(q.cfg.Deletes)
}

// hash is a number that depends on the seed and its arguments only.
func (q Sequence) hash(a, b, c uint64) uint64 {
	return mix(mix(mix(q.cfg.Seed+a)+b) + c)
}

// mix is the output function of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// TableName is the name of the i-th table, from 0.
func TableName(i int) rows.TableID { return rows.TableID(fmt.Sprintf("gen.t%d", i+1)) }
