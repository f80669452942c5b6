package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/verdict"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/lake"
	"weir.dev/weir/services/weir/verify/process"
	"weir.dev/weir/services/weir/verify/shop"
)

// logSuffix ends the names of changelog tables.
const logSuffix = "_changes"

// namespace of the tables.
const namespace = "shop"

// iceTarget is one sink to Iceberg: for each table the rows as they are now and every change, in one commit. Catalog (SQLite) and
// files are in a folder of the run's own.
type iceTarget struct {
	dir, id string
	judge   *lake.Judge // nil when nobody wants it
	// whole says that every change has all columns, so that rows whose key changes may have several writers.
	whole bool

	lake *lake.Lake
}

func newIceTarget(target, id string, judged, whole bool) (*iceTarget, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	p := &iceTarget{dir: filepath.Join(u.Path, id), id: id, whole: whole}
	if judged {
		p.judge = lake.NewJudge(p.dir, "")
	}
	p.lake, err = lake.Open(filepath.Join(p.dir, "catalog.db"), namespace, id, copying)
	return p, err
}

// icebergVersion checks that the folder can be written to, and that the judge is there when one is wanted.
func icebergVersion(ctx context.Context, target string, judged bool) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(u.Path, 0o700); err != nil {
		return "", err
	}
	probe, err := os.MkdirTemp(u.Path, "wv")
	if err != nil {
		return "", err
	}
	if err := os.Remove(probe); err != nil {
		return "", err
	}
	what := "Iceberg v2, catalog in SQLite, local files"
	if judged {
		version, err := lake.NewJudge(u.Path, "").Version(ctx)
		if err != nil {
			return "", err
		}
		what += "; judged by ClickHouse " + version
	}
	return what, nil
}

func (p *iceTarget) line() string { return "" }

func (p *iceTarget) parallel() bool { return p.whole }

func (p *iceTarget) spec(writers int, _ bool) string {
	if !p.whole {
		writers = 1
	}
	return fmt.Sprintf(`
  copy: {from: [db], type: iceberg, warehouse: "${VERIFY_TARGET}", namespace: %s, mode: upsert, changelog: "{table}%s", writers: %d}`,
		namespace, logSuffix, writers)
}

func (p *iceTarget) sinks() []string { return []string{copying} }

func (p *iceTarget) begin(context.Context) error { return os.Mkdir(p.dir, 0o700) }

// glance is how often a reader scans: it costs more than a query.
const glance = 400 * time.Millisecond

func (p *iceTarget) watch(ctx context.Context, durable func(context.Context) (uint64, bool)) []*audit.Reader {
	return []*audit.Reader{audit.StartLooks(ctx, glance, durable, p.look)}
}

// look scans all tables as they are at one moment.
func (p *iceTarget) look(ctx context.Context, last bool) (audit.Look, error) {
	if last {
		return audit.Look{}, nil
	}
	pin, err := p.lake.Pin(ctx)
	if err != nil {
		return audit.Look{}, err
	}
	now := audit.Look{Epoch: pin.Epoch, Fence: pin.Fence, Logged: pin.Logged}
	for _, table := range shop.Tables() {
		if !pin.Has(table, table+logSuffix) {
			return now, fmt.Errorf("no table %s yet", table)
		}
		n, at, err := pin.Count(ctx, table+logSuffix, copying)
		if err != nil {
			return now, err
		}
		now.Rows += n
		// Its neighbour changes in the same transaction, or not at all.
		if _, of, err := pin.Count(ctx, table, copying); err != nil || of != at {
			now.Torn++
		}
	}
	orders, err := pin.Content(ctx, []audit.Table{{Name: "orders", Key: []string{"id"}}}, "id", "total")
	if err != nil {
		return now, err
	}
	items, err := pin.Content(ctx, []audit.Table{{Name: "order_items", Key: []string{"order_id", "line"}}}, "order_id", "line", "quantity", "price")
	if err != nil {
		return now, err
	}
	now.Torn += torn(orders["orders"], items["order_items"])
	return now, nil
}

// torn counts what only half a transaction leaves behind, as [shop.Torn] does.
func torn(orders, items audit.Content) int64 {
	owed := make(map[string]int64)
	for _, rows := range items {
		for _, item := range rows {
			quantity, _ := strconv.ParseInt(*item["quantity"], 10, 64) // an integer column
			owed[*item["order_id"]] += quantity * cents(*item["price"])
		}
	}
	var n int64
	for _, rows := range orders {
		for _, order := range rows {
			if total, ok := owed[*order["id"]]; !ok || total != cents(*order["total"]) {
				n++
			}
			delete(owed, *order["id"])
		}
	}
	return n + int64(len(owed))
}

// cents reads a decimal of scale 2.
func cents(s string) int64 {
	n, _ := strconv.ParseInt(strings.Replace(s, ".", "", 1), 10, 64) // a decimal column
	return n
}

func (p *iceTarget) changes(ctx context.Context) ([]audit.Change, error) {
	pin, err := p.lake.Pin(ctx)
	if err != nil {
		return nil, err
	}
	return pin.Changes(ctx, shopTables(), logSuffix, p.id+"_shop")
}

func (p *iceTarget) content(ctx context.Context) (map[string]audit.Content, error) {
	pin, err := p.lake.Pin(ctx)
	if err != nil {
		return nil, err
	}
	return pin.Content(ctx, shopTables())
}

func (p *iceTarget) judged(ctx context.Context) (bool, error) {
	if p.judge == nil {
		return false, nil
	}
	pin, err := p.lake.Pin(ctx)
	if err != nil {
		return false, err
	}
	var all []string
	for _, table := range shop.Tables() {
		all = append(all, table, table+logSuffix)
	}
	err = p.judge.Agree(ctx, pin, all)
	return err == nil, err
}

func (p *iceTarget) ledger(ctx context.Context, _ string) ([]verdict.Applied, error) {
	return p.lake.Ledger(ctx)
}

func (p *iceTarget) ledgerAt(ctx context.Context, _ string) (int64, error) { return p.lake.Epoch(ctx) }

func (p *iceTarget) hold(ctx context.Context) (release func() error, err error) {
	return p.lake.Hold(ctx)
}

// heldUp waits until an epoch has been durable for a while and is not committed, which means that its commit waits for the catalog.
// One that was committed just before the catalog was locked may not have been told yet.
func (p *iceTarget) heldUp(ctx context.Context, t *trial) (commit string, err error) {
	told := false
	for {
		h, err := t.uncommitted(ctx)
		if err != nil {
			return "", err
		}
		if err := process.Pause(ctx, 500*time.Millisecond); err != nil {
			return "", err
		}
		at, err := p.lake.Epoch(ctx)
		switch {
		case err != nil:
			return "", err
		case at < int64(h.Durable.Epoch):
			return fmt.Sprintf("epoch %d, which waits for the catalog", h.Durable.Epoch), nil
		case told:
			return "", fmt.Errorf("epoch %d was committed to a catalog that is locked", at)
		}
		told = true
	}
}

func (p *iceTarget) stuck(context.Context, *trial, string) error { return nil } // it holds nothing

func (p *iceTarget) before(ctx context.Context, t *trial) error {
	return t.killHeld(ctx, "the committer before its transaction, when it waits for the catalog")
}

// within kills the committer in the moments in which it has got the catalog.
func (p *iceTarget) within(ctx context.Context, t *trial) error {
	release, err := p.lake.Hold(ctx)
	if err != nil {
		return err
	}
	commit, err := p.heldUp(ctx, t)
	if err != nil {
		return errors.Join(err, release())
	}
	n, err := t.holder(ctx, copyCommitter())
	if err != nil {
		return errors.Join(err, release())
	}
	wait := time.Duration(rand.Int64N(int64(30 * time.Millisecond)))
	if err := errors.Join(release(), process.Pause(ctx, wait)); err != nil {
		return err
	}
	if err := t.kill(ctx, fmt.Sprintf("the committer of %s, %s after it was let go", commit, wait.Round(time.Millisecond)), n); err != nil {
		return err
	}
	at, err := p.lake.Epoch(ctx)
	if err != nil {
		return err
	}
	t.faults[len(t.faults)-1].Evidence += fmt.Sprintf("; the catalog was at epoch %d", at)
	if err := t.recovered(ctx); err != nil {
		return err
	}
	return back(ctx, n)
}

// after kills the committer when the catalog has an epoch of which it has told nobody.
func (p *iceTarget) after(ctx context.Context, t *trial) error {
	for range 200 {
		n, err := t.holder(ctx, copyCommitter())
		if err != nil {
			return err
		}
		told, at, err := p.unheard(ctx, t, n)
		if err != nil {
			return err
		}
		if at <= told {
			continue // it was quicker
		}
		if err := t.kill(ctx, "the committer, when its epoch is in the catalog and nobody has heard of it", n); err != nil {
			return err
		}
		t.faults[len(t.faults)-1].Evidence += fmt.Sprintf("; the catalog was at epoch %d, the bus knew of %d", at, told)
		if err := t.recovered(ctx); err != nil {
			return err
		}
		return back(ctx, n)
	}
	return errors.New("no commit was met before the bus knew of it")
}

// unheard freezes the committer as soon as the catalog has another epoch. It leaves it so when the bus does not know of that one; and
// lets it go on else.
func (p *iceTarget) unheard(ctx context.Context, t *trial, n *node) (told, at int64, err error) {
	was, err := p.lake.Epoch(ctx)
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, recoverTime)
	defer cancel()
	for at = was; at == was && err == nil; {
		at, err = p.lake.Epoch(ctx)
	}
	if err == nil {
		err = n.Pause()
	}
	if err != nil {
		return 0, 0, err
	}
	told, err = p.known(ctx, t)
	if err != nil || at <= told {
		err = errors.Join(err, n.Resume())
	}
	return told, at, err
}

// known is the newest epoch that the bus has been told is committed: in the head record, or as a fact on its way there.
func (p *iceTarget) known(ctx context.Context, t *trial) (int64, error) {
	v, err := t.reg.Head(ctx, t.id)
	if err != nil {
		return 0, err
	}
	facts, err := t.conn.Facts(ctx, t.id, v.Head.Fence)
	if err != nil {
		return 0, err
	}
	told := int64(v.Head.Committed)
	for _, f := range facts {
		_, _, kind, subtask, err := bus.ParseAckSubject(f.Key)
		if err != nil {
			return 0, err
		}
		if kind == string(envelope.Committed) && subtask.Vertex == copyCommitter() {
			var fact job.CommittedFact
			if err := json.Unmarshal(f.Value, &fact); err != nil {
				return 0, err
			}
			told = max(told, int64(fact.Epoch))
		}
	}
	return told, nil
}

func (p *iceTarget) away(ctx context.Context, _ *trial) (what string, back func() error, err error) {
	back, err = p.lake.Hold(ctx)
	return "the catalog is locked", back, err
}

// slow locks the catalog for nine tenths of the time.
func (p *iceTarget) slow(ctx context.Context, _ *trial) (what string, back func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			release, err := p.lake.Hold(ctx)
			if err != nil {
				done <- err
				return
			}
			_ = process.Pause(ctx, 1800*time.Millisecond)
			if err := release(); err != nil {
				done <- err
				return
			}
			_ = process.Pause(ctx, 200*time.Millisecond)
		}
		done <- nil
	}()
	return "the catalog is locked for nine tenths of the time", func() error { cancel(); return <-done }, nil
}

func (p *iceTarget) spoil(context.Context) error { return errors.ErrUnsupported } // its tables have no constraints
func (p *iceTarget) cure(context.Context) error  { return errors.ErrUnsupported }

func (p *iceTarget) end(context.Context) error {
	return errors.Join(p.lake.Close(), os.RemoveAll(p.dir))
}
