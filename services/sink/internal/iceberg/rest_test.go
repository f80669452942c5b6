package iceberg

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

// wantGoods compares both tables with what epochs of one new row and one update of the rows 0 to 4 leave.
func (s *scene) wantGoods(t *testing.T, epochs int64) {
	t.Helper()
	now := make(map[string]string)
	for _, r := range s.rows(t, current, "shop.goods") {
		now[r.Cells["id"]] = r.Cells["name"]
	}
	want := make(map[string]string)
	for i := range epochs {
		want[fmt.Sprint(i%5)] = fmt.Sprint(i)
		want[fmt.Sprint(100+i)] = "new"
	}
	if fmt.Sprint(now) != fmt.Sprint(want) {
		t.Errorf("the rows are\n%v, want\n%v", now, want)
	}
	if n := len(s.rows(t, changelog, "shop.goods")); int64(n) != 2*epochs {
		t.Errorf("%d images, want %d", n, 2*epochs)
	}
}

// A catalog of which every second commit fails in one of six ways delays epochs and changes none.
func TestFailingREST(t *testing.T) {
	t.Parallel()
	for _, how := range []spec.RESTCommit{spec.CommitTransaction, spec.CommitOrdered} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			server := startREST(t)
			target := server.spec(t, how, both)
			s := newScene(t, target)
			s.quiet = true
			rng := rand.New(rand.NewPCG(1, 7))
			seen := make(map[mishap]int)
			server.fault = func(string) mishap {
				all := []mishap{conflicts, refusesIt, losesIt, gateway, cutsIt, repeats, "", "", "", "", ""}
				f := all[rng.IntN(len(all))]
				seen[f]++
				return f
			}
			goods := schemaOf(t, 1, text("name", 2))
			const epochs = 18
			for i := range int64(epochs) {
				if i%8 == 7 {
					s.fence++ // an attempt that died
					s.start(t)
				}
				s.retry(t, s.batch(t, goods, image{rows.OpUpdateAfter, i % 5, fmt.Sprint(i)}, image{rows.OpInsert, 100 + i, "new"}))
			}
			if len(seen) != 7 {
				t.Fatalf("faults %v, want all", seen)
			}
			server.fault = nil
			s.wantGoods(t, epochs)
			wantNoMetadata(t, target)
			l, err := s.c.tables.catalog.history(t.Context())
			if err != nil || l.Check() != nil || l.Ref != s.last || len(l.Log) != epochs {
				t.Errorf("the ledger is at %v with %d entries: %v, %v", l.Ref, len(l.Log), l.Check(), err)
			}
			ledger := server.tables["lake."+s.p.ledgerName()].meta
			for _, snap := range ledger.Snapshots() {
				if _, err := snap.Manifests(s.p.fs); err != nil {
					t.Errorf("snapshot %d of the ledger's table: %v", snap.SnapshotID, err)
				}
			}
		})
	}
}

// A committer that stops between its look at the ledger and its commit, and comes back when its successor has claimed, commits
// nothing (I8), also when the successor has gone on.
func TestZombieAtREST(t *testing.T) {
	t.Parallel()
	for _, how := range []spec.RESTCommit{spec.CommitTransaction, spec.CommitOrdered} {
		for _, ahead := range []bool{false, true} {
			t.Run(fmt.Sprint(how, " ahead ", ahead), func(t *testing.T) {
				t.Parallel()
				server := startREST(t)
				s := newScene(t, server.spec(t, how, both))
				goods := schemaOf(t, 1, text("name", 2))
				one := func(i int64) rows.Batch {
					return s.batch(t, goods, image{rows.OpUpdateAfter, i % 5, fmt.Sprint(i)}, image{rows.OpInsert, 100 + i, "new"})
				}
				s.epoch(t, one(0))
				c := s.stage(t, one(1))
				entered, leave := make(chan struct{}), make(chan struct{})
				first := true
				server.before = func(string) {
					if first {
						first = false
						close(entered)
						<-leave
					}
				}
				zombie, result := s.c, make(chan error)
				go func() {
					_, err := zombie.Commit(t.Context(), c)
					result <- err
				}()
				<-entered
				s.start(t)
				if ahead {
					s.commit(t, c)
					s.epoch(t, one(2))
				}
				close(leave)
				if err := <-result; !errors.Is(err, fault.Fenced) {
					t.Errorf("the zombie's commit: %v, want that it is fenced", err)
				}
				if !ahead {
					if row, err := s.c.tables.catalog.row(t.Context()); err != nil || row.Ref != s.last {
						t.Errorf("the ledger is at %v, %v; the zombie moved it", row, err)
					}
					s.commit(t, c)
					s.epoch(t, one(2))
				}
				s.wantGoods(t, 3)
			})
		}
	}
}

// What stops between two tables of an epoch goes on with the second.
func TestOrderedCommitGoesOn(t *testing.T) {
	t.Parallel()
	server := startREST(t)
	s := newScene(t, server.spec(t, spec.CommitOrdered, both))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	for _, down := range []string{"shop_goods", s.p.ledgerName()} {
		server.fault = func(name string) mishap {
			if name == down {
				return refusesIt
			}
			return ""
		}
		c := s.stage(t, s.batch(t, goods, image{rows.OpInsert, 2, "b"}))
		if _, err := s.c.Commit(t.Context(), c); !errors.Is(err, fault.Transient) {
			t.Fatalf("commit while %s is down: %v", down, err)
		}
		images, found := len(s.rows(t, changelog, "shop.goods")), len(s.rows(t, current, "shop.goods"))
		if images != int(c.Ref.Epoch) || found != 1 && down == "shop_goods" {
			t.Errorf("while %s is down there are %d images and %d rows", down, images, found)
		}
		server.fault = nil
		s.start(t)
		s.commit(t, c)
		if images := len(s.rows(t, changelog, "shop.goods")); images != int(c.Ref.Epoch) {
			t.Errorf("%d images after epoch %s", images, c.Ref.Epoch)
		}
	}
	// An epoch of this number that is another one is refused.
	c := s.stage(t, s.batch(t, goods, image{rows.OpInsert, 3, "c"}))
	server.fault = func(name string) mishap {
		if name == s.p.ledgerName() {
			return refusesIt
		}
		return ""
	}
	if _, err := s.c.Commit(t.Context(), c); !errors.Is(err, fault.Transient) {
		t.Fatal(err)
	}
	server.fault = nil
	c.Ref.Digest = "other"
	if _, err := s.c.Commit(t.Context(), c); fault.CodeOf(err) != fault.JobLedgerDiverged {
		t.Errorf("another epoch %s: %v", c.Ref.Epoch, err)
	}
}

// Another engine's commit between the read and the commit makes the epoch be built anew, on what that engine has left.
func TestForeignCommitAtREST(t *testing.T) {
	t.Parallel()
	server := startREST(t)
	s := newScene(t, server.spec(t, "", both))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	tries := 0
	server.before = func(name string) {
		if tries++; name != "" || tries > 1 {
			return
		}
		server.mu.Lock()
		defer server.mu.Unlock()
		t := server.tables["lake.shop_goods"]
		later := *t.meta.CurrentSnapshot()
		later.ParentSnapshotID, later.SnapshotID, later.SequenceNumber = head(t.meta), 7, later.SequenceNumber+1
		meta, err := table.UpdateTableMetadata(t.meta, table.Updates{
			table.NewSetPropertiesUpdate(iceberg.Properties{"owner": "analytics"}),
			table.NewAddSnapshotUpdate(&later), table.NewSetSnapshotRefUpdate(table.MainBranch, 7, table.BranchRef, 0, 0, 0),
		}, t.at)
		if err != nil {
			panic(err)
		}
		server.tables["lake.shop_goods"] = t.next(meta)
	}
	s.epoch(t, s.batch(t, goods, image{rows.OpUpdateAfter, 1, "b"}, image{rows.OpInsert, 2, "c"}))
	if tries != 2 {
		t.Errorf("%d commits, want one that was late and another", tries)
	}
	st := s.state(t, current)
	if st.meta.Properties()["owner"] != "analytics" || st.meta.SnapshotByID(7) == nil {
		t.Error("what the other engine left is gone")
	}
	if got := len(s.rows(t, current, "shop.goods")); got != 2 {
		t.Errorf("%d rows, want 2", got)
	}
}

// A token that has run out is replaced, and the request it was refused for is sent again; nothing else is.
func TestTokens(t *testing.T) {
	t.Parallel()
	server := startREST(t)
	server.secret, server.uses = "canary", 3
	target := server.spec(t, "", func(i *spec.IcebergSink) { i.REST.Credential = config.NewSecret("weir:canary") })
	s := newScene(t, target)
	goods := schemaOf(t, 1, text("name", 2))
	for i := range int64(5) {
		s.epoch(t, s.batch(t, goods, image{rows.OpInsert, i, "a"}))
	}
	if n := server.asked["POST /v1/oauth/tokens"]; n < 5 {
		t.Errorf("%d tokens", n)
	}
	for name, tt := range map[string]struct {
		token, credential string
	}{
		"wrong secret": {"", "weir:canary2"},
		"wrong token":  {"canary3", ""},
	} {
		broken := server.spec(t, "", func(i *spec.IcebergSink) {
			i.REST.Token, i.REST.Credential = config.NewSecret(tt.token), config.NewSecret(tt.credential)
		})
		_, err := Connector{}.OpenCommitter(t.Context(), sink.Config{Sink: broken, Resolve: resolve})
		if fault.CodeOf(err) != fault.SinkWrongPassword || strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A catalog that cannot do what the sink needs is refused before anything is written, with the way out.
func TestRefusedAtREST(t *testing.T) {
	t.Parallel()
	server := startREST(t)
	server.endpoints = []string{"GET /v1/{prefix}/namespaces/{namespace}", "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}"}
	open := func(how spec.RESTCommit, more func(*spec.IcebergSink)) error {
		w, err := Connector{}.OpenWriter(t.Context(), sink.Config{Sink: server.spec(t, how, more), Resolve: resolve})
		if err == nil {
			err = w.Close()
		}
		return err
	}
	if err := open("", nil); fault.CodeOf(err) != fault.SinkCatalog || !strings.Contains(fault.Of(err).Remedy, "ordered") {
		t.Errorf("a catalog without transactions: %v", err)
	}
	if err := open(spec.CommitOrdered, nil); err != nil {
		t.Errorf("a catalog without transactions, in order: %v", err)
	}
	if err := open(spec.CommitOrdered, func(i *spec.IcebergSink) { i.REST.Warehouse = config.NewText("other") }); fault.CodeOf(err) != fault.SinkCatalog {
		t.Errorf("a warehouse that is not there: %v", err)
	}
	if err := open(spec.CommitOrdered, func(i *spec.IcebergSink) { i.Catalog = config.NewSecret("sqlite:///tmp/x.db") }); fault.CodeOf(err) != fault.SinkBadURL {
		t.Errorf("settings of a REST catalog for another one: %v", err)
	}
	for status, want := range map[int]fault.Code{
		http.StatusForbidden: fault.SinkMissingRight, http.StatusServiceUnavailable: fault.SinkBusy, http.StatusBadGateway: fault.SinkUnreachable,
		http.StatusTooManyRequests: fault.SinkBusy, http.StatusUnprocessableEntity: fault.SinkCatalog,
	} {
		if got := (&restError{status: status}).code(); got != want {
			t.Errorf("status %d is %s, want %s", status, got, want)
		}
	}
}

// A reply that is lost on the way is looked up: the epoch is there, and one request was enough.
func TestLostReplyAtREST(t *testing.T) {
	t.Parallel()
	server := startREST(t)
	s := newScene(t, server.spec(t, "", both))
	goods := schemaOf(t, 1, text("name", 2))
	for i, m := range []mishap{"", losesIt, gateway, cutsIt} {
		commits := 0
		server.fault = func(what string) mishap {
			if what != "" {
				return "" // maintenance
			}
			commits++
			return m
		}
		s.epoch(t, s.batch(t, goods, image{rows.OpUpdateAfter, int64(i) % 5, fmt.Sprint(i)}, image{rows.OpInsert, 100 + int64(i), "new"}))
		if commits != 1 {
			t.Errorf("%d commits, although %s", commits, m)
		}
	}
	s.wantGoods(t, 4)
}
