package cdcmysql

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// A beat goes from the server's log to the sinks in every family of positions.
func TestBeatOfTheLog(t *testing.T) {
	t.Parallel()
	const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	gtids := func(text string) core.Point {
		s, err := position.ParseGTIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return core.Point{Family: position.MySQLGTID, GTIDs: s}
	}
	maria := func(text string) core.Point {
		s, err := position.ParseMariaGTIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return core.Point{Family: position.MariaDBGTID, Maria: s}
	}
	place := func(text string) core.Point {
		at, err := position.ParseBinlogPos(text)
		if err != nil {
			t.Fatal(err)
		}
		return core.Point{Family: position.MySQLBinlog, Binlog: at}
	}
	for family, points := range map[string][3]core.Point{
		"mysql":            {gtids(uuid + ":1-5"), gtids(uuid + ":1-8"), gtids(uuid + ":1-9")},
		"mariadb":          {maria("0-1-5"), maria("0-1-8"), maria("0-1-9")},
		"mysql by a place": {place("b.000004:100"), place("b.000004:200"), place("b.000005:4")},
	} {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			from, before, mark := points[0], points[1], points[2]
			p := newProgress(false)
			leg := func(want report.Leg, quiet bool) {
				t.Helper()
				if w := p.report().UnderWay; w == nil || w.Leg != want || w.Quiet != quiet {
					t.Errorf("%+v, want %s", w, want)
				}
			}
			p.observe(time.Now(), 0, &mark)
			if w := p.report().UnderWay; w != nil {
				t.Errorf("before the log is followed: %+v", w)
			}
			p.start(from.Public())
			p.observe(time.Now(), 0, &mark)
			p.consume(before.Public(), &before)
			leg(report.Reading, false)
			p.emitted("t", 2, 1)
			p.consume(mark.Public(), &mark)
			leg(report.Waiting, false)
			p.beats.Cut(time.Now(), 3)
			leg(report.Landing, false)
			p.beats.Confirm(time.Now(), 3)
			if b, ok := p.report().Beat.Get(); !ok || b.Epoch != 3 || b.Quiet {
				t.Errorf("%+v", b)
			}
			p.observe(time.Now(), 0, &mark) // nothing has come: the mark is read when it is seen
			leg(report.Waiting, true)
		})
	}
	if b := newProgress(true).report().Beat; b.Accuracy() != report.Unsupported {
		t.Errorf("of a reader without the log: %s", b.Accuracy())
	}
}

// What people are shown of a mark is the place in the words of its family.
func TestWatermark(t *testing.T) {
	t.Parallel()
	at, err := position.ParseBinlogPos("b.000004:100")
	if err != nil {
		t.Fatal(err)
	}
	mark, err := core.NewMark(core.Point{Family: position.MySQLBinlog, Binlog: at}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := core.Watermark(mark); err != nil || got != "b.000004:100" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := core.Watermark([]byte("{")); err == nil {
		t.Error("half a mark is shown")
	}
}
