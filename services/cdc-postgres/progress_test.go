package cdcpostgres

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// A beat begins once the log is followed, with what the server has flushed: what is behind that no walsender sends.
func TestBeatOfTheLog(t *testing.T) {
	t.Parallel()
	p := newProgress(none(), false)
	see := func(flushed, end position.LSN) {
		p.observe(t.Context(), time.Now(), 0, pgrepl.Head{LSN: end, Flushed: flushed, At: time.Now()})
	}
	leg := func() report.Leg {
		if w := p.report().UnderWay; w != nil {
			return w.Leg
		}
		return ""
	}
	see(100, 120)
	if got := leg(); got != "" {
		t.Errorf("before the log is followed: %s", got)
	}
	p.start(core.Position{End: 90})
	see(100, 120)
	p.consume(core.Position{End: 99})
	if got := leg(); got != report.Reading {
		t.Errorf("before the mark: %q", got)
	}
	p.emitted(t.Context(), "public.t", 3, 1)
	p.consume(core.Position{End: 100})
	if got := leg(); got != report.Waiting {
		t.Errorf("at the mark: %q", got)
	}
	p.beats.Cut(time.Now(), 7)
	p.beats.Confirm(time.Now(), 6)
	if got := leg(); got != report.Landing {
		t.Errorf("in an epoch: %q", got)
	}
	p.beats.Confirm(time.Now(), 8)
	if b, ok := p.report().Beat.Get(); !ok || b.Epoch != 8 || b.Quiet {
		t.Errorf("%+v", b)
	}
	see(100, 120) // nothing has come: the mark is read when it is seen
	if w := p.report().UnderWay; w == nil || w.Leg != report.Waiting || !w.Quiet {
		t.Errorf("on a quiet server: %+v", w)
	}
	if b := newProgress(none(), true).report().Beat; b.Accuracy() != report.Unsupported {
		t.Errorf("of a reader without the log: %s", b.Accuracy())
	}
}
