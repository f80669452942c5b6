package iceberg

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// bare puts an epoch into the tables without maintenance behind it.
func (s *scene) bare(t *testing.T, batches ...rows.Batch) {
	t.Helper()
	c := s.stage(t, batches...)
	pieces := make([]*piece, len(c.Staged))
	for i, st := range c.Staged {
		var err error
		if pieces[i], err = parsePiece(st); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.c.attempt(t.Context(), c, pieces, 1); err != nil {
		t.Fatal(err)
	}
	s.last = c.Ref
}

// rewriting plans a rewrite of a current table as it is.
func (s *scene) rewriting(t *testing.T, id rows.TableID, files iceio.IO) *rewriting {
	t.Helper()
	st, err := s.tables.load(t.Context(), current, id, nil)
	if err != nil || st.meta == nil {
		t.Fatalf("load %s: %v", id, err)
	}
	open := func(context.Context) (iceio.IO, error) { return files, nil }
	made, err := planned(t.Context(), table.New(table.Identifier{st.namespace, st.name}, st.meta, st.at, open, nil), files)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// keyKinds are the types that a key can have, each with a value for a number.
func keyKinds() map[string]rows.Type {
	return map[string]rows.Type{
		"bool": rows.Of(rows.KindBool), "int": rows.Of(rows.KindInt32), "long": rows.Of(rows.KindInt64), "unsigned": rows.Of(rows.KindUint64),
		"decimal": rows.Decimal(12, 2), "text": rows.Of(rows.KindText), "bytes": rows.Of(rows.KindBytes), "date": rows.Of(rows.KindDate),
		"time": rows.Of(rows.KindTime), "timestamp": rows.Of(rows.KindTimestamp), "timestamptz": rows.Of(rows.KindTimestampTZ),
		"uuid": rows.Of(rows.KindUUID),
	}
}

func appendNumber(t *testing.T, b array.Builder, n int) {
	t.Helper()
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(n%2 == 0)
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int64Builder:
		b.Append(int64(n))
	case *array.Uint64Builder:
		b.Append(uint64(n) << 40)
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(int64(n)))
	case *array.StringBuilder:
		b.Append(strings.Repeat("k", n%3) + fmt.Sprint(n))
	case *array.BinaryBuilder:
		b.Append([]byte{byte(n), 0, byte(n)})
	case *array.Date32Builder:
		b.Append(arrow.Date32(n))
	case *array.Time64Builder:
		b.Append(arrow.Time64(n))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(n))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{15: byte(n)})
	default:
		t.Fatalf("no value for a %T", b)
	}
}

// A rewrite leaves out the rows that the library leaves out when it reads, for every type of key, however few keys it may hold at once.
func TestRewriteLeavesOutWhatReadersDo(t *testing.T) {
	t.Parallel()
	for name, kind := range keyKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leavesOutWhatReadersDo(t, kind, 0)
		})
		if kind.Kind == rows.KindBool {
			continue // has no buckets
		}
		t.Run(name+" in buckets", func(t *testing.T) {
			t.Parallel()
			leavesOutWhatReadersDo(t, kind, 3)
		})
	}
}

func leavesOutWhatReadersDo(t *testing.T, kind rows.Type, buckets int) {
	t.Helper()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, func(i *spec.IcebergSink) { i.Buckets = buckets }))
	schema, err := rows.NewSchema("shop.goods", 1, "", []rows.Column{
		{Name: "a", Type: kind, KeyPos: 1, ID: 1},
		{Name: "b", Type: rows.Of(rows.KindText), KeyPos: 2, ID: 2},
		{Name: "n", Type: rows.Of(rows.KindInt64), Nullable: true, ID: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		b := rows.NewBuilder(schema)
		for range 12 {
			s.seq++
			key := rng.IntN(20)
			appendNumber(t, b.Column(0), key)
			b.Column(1).(*array.StringBuilder).Append(fmt.Sprint("b", key/10))
			b.Column(2).(*array.Int64Builder).Append(int64(s.seq))
			op := []rows.Op{rows.OpInsert, rows.OpUpdateAfter, rows.OpDelete}[rng.IntN(3)]
			b.EndRow(rows.Meta{Op: op, Seq: s.seq, Ts: int64(s.seq), Txn: s.seq})
		}
		batch, err := b.Flush()
		if err != nil {
			t.Fatal(err)
		}
		s.bare(t, *batch)
	}
	r := s.rewriting(t, "shop.goods", s.p.fs)
	if len(r.deletes) < 7*(1+min(buckets, 1)) || r.share != usualShare() {
		t.Fatalf("%d files of deletes, %+v", len(r.deletes), r.share)
	}
	for _, task := range r.tasks {
		for _, d := range task.EqualityDeleteFiles {
			if !r.ours(task, d) {
				t.Fatal("a delete of the sink is left to the library")
			}
		}
	}
	_, records, err := r.t.Scan().ReadTasks(t.Context(), r.tasks)
	if err != nil {
		t.Fatal(err)
	}
	want := numbers(t, records)
	for _, keys := range []int{1, 200, 1 << 20} {
		r.share.keys = keys
		gone, err := r.gone(t.Context(), r.tasks)
		if err != nil {
			t.Fatal(err)
		}
		if got := numbers(t, r.living(t.Context(), r.tasks, gone, 5)); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("with %d bytes of keys the rows are %v, a reader sees %v", keys, got, want)
		}
	}
}

func numbers(t *testing.T, records func(func(arrow.RecordBatch, error) bool)) (all []int64) {
	t.Helper()
	for b, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b.Column(int(b.NumCols())-1).(*array.Int64).Int64Values()...)
	}
	slices.Sort(all)
	return all
}

// Inserts delete keys that no row has. When keys ascend, that costs no rewrite, however large the table: the deletes reach nothing and
// go. A delete that reaches a file stays for as long as the file is not rewritten.
func TestDeletesThatReachNothingGo(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
	goods := schemaOf(t, 1, text("name", 2))
	for id := range int64(6) {
		s.bare(t, s.batch(t, goods, image{rows.OpInsert, id, "new"}))
	}
	r := s.rewriting(t, "shop.goods", s.p.fs)
	if dead := deadOf(t, r); len(dead) != 5 {
		t.Errorf("%d of 5 deletes are dead", len(dead))
	}
	s.bare(t, s.batch(t, goods, image{rows.OpUpdateAfter, 2, "changed"}))
	r = s.rewriting(t, "shop.goods", s.p.fs)
	if dead := deadOf(t, r); len(dead) != 5 {
		t.Errorf("%d of 6 deletes are dead, and one of them takes a row", len(dead))
	}
	at := slices.IndexFunc(r.tasks, func(task table.FileScanTask) bool { return len(task.EqualityDeleteFiles) > 0 })
	if dead := deadOf(t, r, r.tasks[at]); len(dead) != 6 {
		t.Errorf("%d of 6 deletes are dead when the file of the row is rewritten", len(dead))
	}
	// Maintenance pays at the next epoch.
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 7, "new"}))
	if n := total(s.state(t, current).meta, "total-delete-files"); n > 0 {
		t.Errorf("%d files of deletes are left", n)
	}
	if got := cells(s.rows(t, current, "shop.goods")); strings.Count(got, "=") != 7 || strings.Count(got, "2=changed") != 1 {
		t.Errorf("the rows are %s", got)
	}
}

// What is dead is told by the bounds of columns, of which a file has the first 16 characters or bytes only: a delete whose key lies
// behind them, or whose bound has no successor of that length, is alive.
func TestDeletesOfLongKeysAreAlive(t *testing.T) {
	t.Parallel()
	a15, last := strings.Repeat("a", 15), "\U0010FFFF"
	keys := []string{
		"", "a", a15 + "aaaab", a15 + "aaaac", a15 + "\u00e9\u00e9z", a15 + "\u00ffz", a15 + "\ud7ff\ud7ffz", a15 + "\uffffz",
		a15 + last + last, a15 + last + last + "z", strings.Repeat(last, 20), strings.Repeat(last, 21), strings.Repeat("\ud7ff", 20),
	}
	for name, kind := range map[string]rows.Kind{"text": rows.KindText, "bytes": rows.KindBytes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
			schema, err := rows.NewSchema("shop.goods", 1, "", []rows.Column{{Name: "k", Type: rows.Of(kind), KeyPos: 1, ID: 1}})
			if err != nil {
				t.Fatal(err)
			}
			change := func(op rows.Op, key string) rows.Batch {
				b := rows.NewBuilder(schema)
				s.seq++
				switch c := b.Column(0).(type) {
				case *array.StringBuilder:
					c.Append(key)
				case *array.BinaryBuilder:
					c.Append([]byte(strings.ReplaceAll(key, last, "\xff\xff\xff\xff")))
				}
				b.EndRow(rows.Meta{Op: op, Seq: s.seq, Ts: int64(s.seq), Txn: s.seq})
				batch, err := b.Flush()
				if err != nil {
					t.Fatal(err)
				}
				return *batch
			}
			for _, op := range []rows.Op{rows.OpInsert, rows.OpUpdateAfter} {
				for _, key := range keys {
					s.bare(t, change(op, key))
				}
			}
			r := s.rewriting(t, "shop.goods", s.p.fs)
			if alive := len(r.deletes) - len(deadOf(t, r)); alive < len(keys) {
				t.Errorf("%d of %d deletes are alive, %d take a row", alive, len(r.deletes), len(keys))
			}
			s.epoch(t, change(rows.OpInsert, "the last"))
			after := total(s.state(t, current).meta, "total-delete-files")
			if after >= int64(len(keys)) {
				t.Errorf("maintenance has left %d files of deletes", after)
			}
			if n := len(s.rows(t, current, "shop.goods")); n != len(keys)+1 {
				t.Errorf("%d rows of %d keys, with %d files of deletes", n, len(keys)+1, after)
			}
		})
	}
}

// metered are files that count what goes through them.
type metered struct {
	localFiles
	mu     sync.Mutex
	opened int
	// moved are bytes of rows that were read, less what was written; ahead is the most that it has been.
	moved, ahead int
}

func (m *metered) Open(name string) (iceio.File, error) {
	f, err := m.localFiles.Open(name)
	if err != nil || !strings.HasSuffix(name, ".parquet") {
		return f, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var tail [8]byte // the length of the footer, and Parquet's mark
	if _, err := f.ReadAt(tail[:], info.Size()-8); err != nil {
		return nil, err
	}
	return meteredFile{f, m, info.Size() - 8 - int64(binary.LittleEndian.Uint32(tail[:]))}, nil
}

func (m *metered) Create(name string) (iceio.FileWriter, error) {
	f, err := m.localFiles.Create(name)
	return meteredWriter{f, m}, err
}

func (m *metered) count(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moved += n
	m.ahead = max(m.ahead, m.moved)
}

type meteredFile struct {
	iceio.File
	m      *metered
	footer int64
}

func (f meteredFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if off < f.footer {
		f.m.count(n)
	}
	return n, err
}

type meteredWriter struct {
	iceio.FileWriter
	m *metered
}

func (w meteredWriter) Write(p []byte) (int, error) {
	n, err := w.FileWriter.Write(p)
	w.m.count(-n)
	return n, err
}

// What a rewrite has read and not yet written is a few row groups, whatever the size of the file, since the row groups that it writes
// have the size that the next rewrite holds.
func TestRewriteReadsLittleAhead(t *testing.T) {
	t.Parallel()
	ahead := func(epochs int) (bytes int) {
		s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
		wide := wideSchema(t)
		for range epochs {
			s.bare(t, wideBatch(t, s, wide, 4000))
		}
		files := &metered{}
		r := s.rewriting(t, "bench.wide", files)
		r.share = share{group: 64 << 10, batch: 8 << 10, keys: 64 << 10}
		made, err := r.group(t.Context(), table.CompactionTaskGroup{Tasks: r.tasks})
		if err != nil || len(made.NewDataFiles) != 1 || made.NewDataFiles[0].Count() != int64(epochs*4000) {
			t.Fatalf("%+v, %v", made, err)
		}
		f := made.NewDataFiles[0]
		if n := len(f.SplitOffsets()); n < epochs*4 {
			t.Errorf("%d epochs of 4000 rows are in %d row groups", epochs, n)
		}
		files.moved, files.ahead = 0, 0
		if _, err := r.group(t.Context(), table.CompactionTaskGroup{Tasks: []table.FileScanTask{{File: f, Length: f.FileSizeBytes()}}}); err != nil {
			t.Fatal(err)
		}
		return files.ahead
	}
	small, large := ahead(4), ahead(16)
	t.Logf("%d bytes ahead in a file, %d in one four times as large", small, large)
	if large > 2*small {
		t.Errorf("%d bytes are read ahead in a file, and %d in one four times as large", small, large)
	}
}

// Keys of deletes that are more than may be held come in turns, each of which reads the keys of the files once.
func TestRewriteHoldsFewKeys(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
	goods := schemaOf(t, 1, text("name", 2))
	const n, rounds = 3000, 6
	for range rounds {
		images := make([]image, n)
		for i := range images {
			images[i] = image{rows.OpUpdateAfter, int64(i), "x"}
		}
		s.bare(t, s.batch(t, goods, images...))
	}
	opened := func(keys int) int {
		files := &metered{}
		r := s.rewriting(t, "shop.goods", files)
		r.share.keys, files.opened = keys, 0
		if _, err := r.gone(t.Context(), r.tasks); err != nil {
			t.Fatal(err)
		}
		return files.opened
	}
	all := opened(1 << 30)
	if turns := opened(n * keySize); turns <= all+rounds {
		t.Errorf("%d files are opened for deletes that are held at once, %d for those that come in turns", all, turns)
	}
}
