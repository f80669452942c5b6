package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
)

// restCatalog is a server that has the tables' metadata and the ledger, which is a table of its own. An epoch is one commit to all
// its tables and the ledger; or, when the sink is told to commit in order, one commit after the other, and the ledger's is the
// last: then a table's properties say whether it has the epoch, and a repeated commit leaves it alone.
type restCatalog struct {
	p      *place
	client *restClient
}

var _ catalog = (*restCatalog)(nil)

func openREST(ctx context.Context, p *place) (*restCatalog, error) {
	var token, credential, oauth, warehouse string
	for _, x := range []struct {
		name, raw string
		to        *string
	}{
		{"token", p.ice.REST.Token.Raw(), &token},
		{"credential", p.ice.REST.Credential.Raw(), &credential},
		{"oauth", p.ice.REST.OAuth.String(), &oauth},
		{"warehouse", p.ice.REST.Warehouse.String(), &warehouse},
	} {
		if x.raw == "" {
			continue
		}
		var err error
		if *x.to, err = p.cfg.Resolve(x.raw); err != nil {
			return nil, fmt.Errorf("resolve %s.rest.%s: %w", p.where, x.name, err)
		}
	}
	client, err := dialCatalog(ctx, p.catalog, warehouse, newTokens(token, credential, oauth, p.ice.REST.Scope))
	if err != nil {
		return nil, err
	}
	if !client.transactions && !p.ordered() {
		client.close()
		return nil, fault.New(fault.SinkCatalog, p.where+".rest", "the catalog does not list POST /v1/{prefix}/transactions/commit among its endpoints",
			"where", p.where+".rest")
	}
	return &restCatalog{p: p, client: client}, nil
}

// ordered reports whether the tables of an epoch change one after the other.
func (p *place) ordered() bool { return p.served() && p.ice.REST.Commit == spec.CommitOrdered }

func (c *restCatalog) close() error {
	c.client.close()
	return nil
}

func (c *restCatalog) namespace() string { return "/namespaces/" + url.PathEscape(c.p.ice.Namespace) }

func (c *restCatalog) path(p pointer) string {
	return "/namespaces/" + url.PathEscape(p.namespace) + "/tables/" + url.PathEscape(p.name)
}

func (c *restCatalog) ledgerAt() pointer { return pointer{c.p.ice.Namespace, c.p.ledgerName()} }

// prepare makes the namespace and the ledger's table.
func (c *restCatalog) prepare(ctx context.Context) error {
	err := c.client.do(ctx, http.MethodGet, c.namespace(), nil, nil, nil)
	if statusOf(err) == http.StatusNotFound {
		err = c.client.do(ctx, http.MethodPost, "/namespaces", nil, struct {
			Namespace  []string          `json:"namespace"`
			Properties map[string]string `json:"properties"`
		}{[]string{c.p.ice.Namespace}, map[string]string{}}, nil)
	}
	if err != nil && statusOf(err) != http.StatusConflict { // another has made it in between
		return fmt.Errorf("make namespace %s: %w", c.p.ice.Namespace, err)
	}
	l, err := c.ledger(ctx, false)
	if err != nil || l != nil {
		return err
	}
	first, err := c.p.newLedger()
	if err != nil {
		return err
	}
	if _, _, err := c.begin(ctx, c.ledgerAt(), first); err != nil && !errors.Is(err, errMoved) {
		return fmt.Errorf("make table %s: %w", c.p.ledgerName(), err)
	}
	return nil
}

// loaded is a table as the server has it.
type loaded struct {
	At       string          `json:"metadata-location"`
	Metadata json.RawMessage `json:"metadata"`
}

// ledger reads the ledger's table; nil when there is none. whole is with the log.
func (c *restCatalog) ledger(ctx context.Context, whole bool) (*restLedger, error) {
	query := url.Values{"snapshots": {"refs"}}
	if whole {
		query.Set("snapshots", "all")
	}
	var answer struct {
		Metadata restLedger `json:"metadata"`
	}
	err := c.client.do(ctx, http.MethodGet, c.path(c.ledgerAt()), query, nil, &answer)
	if statusOf(err) == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	if owner := answer.Metadata.Properties[propOwner]; owner != c.p.owner() {
		return nil, fault.New(fault.SinkNameClash, c.p.where, fmt.Sprintf("table %s is the ledger of %q, not of %s", c.p.ledgerName(), owner, c.p.owner()),
			"table", c.p.ledgerName())
	}
	return &answer.Metadata, nil
}

func (c *restCatalog) row(ctx context.Context) (core.Row, error) {
	l, err := c.ledger(ctx, false)
	if err != nil || l == nil {
		return core.Row{}, err
	}
	return l.row()
}

func (c *restCatalog) history(ctx context.Context) (core.Ledger, error) {
	l, err := c.ledger(ctx, true)
	if err != nil || l == nil {
		return core.Ledger{}, err
	}
	return l.history()
}

// claim is a commit to the ledger that holds only on the row that was read, so of two attempts that meet one reads the other's
// fence. An outcome that is not known is read as well.
func (c *restCatalog) claim(ctx context.Context, life string, own fence.Token, allow func(core.Row) error) (core.Row, error) {
	var err error
	for range maxRaces {
		var l *restLedger
		if l, err = c.ledger(ctx, true); err != nil {
			return core.Row{}, err
		}
		if l == nil {
			return core.Row{}, fmt.Errorf("claim the ledger: table %s is gone", c.p.ledgerName())
		}
		found, err := l.row()
		if err != nil {
			return core.Row{}, err
		}
		if err := allow(found); err != nil || (found.Life == life && found.Fence == own) {
			return found, err
		}
		s := l.taken(life, own)
		if err = c.write(ctx, l, &s, nil); err == nil {
			return found, nil
		}
		if !uncertain(err) && !errors.Is(err, errMoved) {
			return core.Row{}, err
		}
	}
	return core.Row{}, err
}

func (c *restCatalog) load(ctx context.Context, p pointer, had *state) (string, table.Metadata, error) {
	var answer loaded
	err := c.client.do(ctx, http.MethodGet, c.path(p), url.Values{"snapshots": {"all"}}, nil, &answer)
	if statusOf(err) == http.StatusNotFound {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	if had != nil && had.at != "" && had.at == answer.At {
		return had.at, had.meta, nil
	}
	return c.parse(answer)
}

func (c *restCatalog) had(ctx context.Context, p pointer) (bool, error) {
	l, err := c.ledger(ctx, false)
	if err != nil || l == nil {
		return false, err
	}
	return l.Properties[propTable+p.name] != "", nil
}

// parse reads a table. One of the sink's must be where its files go.
func (c *restCatalog) parse(answer loaded) (string, table.Metadata, error) {
	meta, err := table.ParseMetadataBytes(answer.Metadata)
	if err != nil {
		return "", nil, fmt.Errorf("read the answer of the catalog: %w", err)
	}
	if meta.Properties()[propOwner] == c.p.owner() && !strings.HasPrefix(meta.Location(), c.p.root+"/") {
		return "", nil, fault.New(fault.SinkCatalog, c.p.where, fmt.Sprintf("the catalog keeps the table at %s, which is not in the warehouse %s",
			meta.Location(), c.p.root), "where", c.p.where+".warehouse")
	}
	return answer.At, meta, nil
}

// begin makes the table, empty: not every server takes new tables in a commit to several. The server numbers the columns.
func (c *restCatalog) begin(ctx context.Context, p pointer, first table.Metadata) (string, table.Metadata, error) {
	partition := first.PartitionSpec()
	props := maps.Clone(first.Properties())
	props[table.PropertyFormatVersion] = strconv.Itoa(first.Version())
	// The metadata files are the server's, and so is their end.
	props[table.MetadataDeleteAfterCommitEnabledKey], props[table.MetadataPreviousVersionsMaxKey] = "true", strconv.Itoa(logKeptFiles)
	var answer loaded
	err := c.client.do(ctx, http.MethodPost, "/namespaces/"+url.PathEscape(p.namespace)+"/tables", nil, struct {
		Name      string                 `json:"name"`
		Location  string                 `json:"location"`
		Schema    *iceberg.Schema        `json:"schema"`
		Partition *iceberg.PartitionSpec `json:"partition-spec"`
		Staged    bool                   `json:"stage-create"`
		Props     iceberg.Properties     `json:"properties"`
	}{p.name, first.Location(), first.CurrentSchema(), &partition, false, props}, &answer)
	if statusOf(err) == http.StatusConflict {
		return "", nil, fmt.Errorf("%w: it is there by now (%w)", errMoved, err)
	}
	if err != nil {
		return "", nil, err
	}
	return c.parse(answer)
}

// stage does nothing: the server writes the metadata, and where it will be is not known before.
func (c *restCatalog) stage(context.Context, *state, table.Metadata) (string, error) { return "", nil }

func (c *restCatalog) apply(ctx context.Context, ch change) (unknown bool, err error) {
	l, err := c.ledger(ctx, ch.entry != nil && ch.entry.ref.Epoch%restLogSlack == 0)
	if err != nil {
		return false, err
	}
	if l == nil {
		l = &restLedger{}
	}
	row, err := l.row()
	if err != nil {
		return false, err
	}
	if err := ch.allow(row); err != nil {
		return false, err
	}
	// Should only some of the commits be made, no row of a current table lacks its image in the changelog.
	slices.SortStableFunc(ch.moves, func(x, y move) int { return strings.Compare(string(x.to.role), string(y.to.role)) })
	var all []tableChange
	for _, m := range ch.moves {
		made, err := changeOf(m.to.pointer, m.from.meta, m.to.meta)
		if err != nil {
			return false, fmt.Errorf("table %s: %w", m.to.name, err)
		}
		all = append(all, made)
	}
	if ch.entry == nil {
		// What the fence keeps a zombie from is seen by the table: it has another snapshot since its successor's first epoch.
		err = c.commit(ctx, all)
	} else {
		var s step
		if s, err = l.advanced(*ch.entry); err == nil {
			for _, m := range ch.moves {
				if key := propTable + m.to.name; l.Properties[key] == "" {
					s.row[key] = m.to.meta.TableUUID().String()
				}
			}
			err = c.write(ctx, l, &s, all)
		}
	}
	if statusOf(err) == http.StatusBadRequest && c.passed(ctx, ch.moves) {
		return false, fmt.Errorf("%w (%w)", errMoved, err)
	}
	return uncertain(err) && !errors.Is(err, errMoved), err
}

// passed reports whether another commit has used the number that a change gives its snapshot. Commits to other branches do that, and
// nothing that a commit can ask for says so; some servers answer 400.
func (c *restCatalog) passed(ctx context.Context, moves []move) bool {
	for _, m := range moves {
		_, now, err := c.load(ctx, m.to.pointer, nil)
		if err == nil && now != nil && now.LastSequenceNumber() != m.from.meta.LastSequenceNumber() {
			return true
		}
	}
	return false
}

// write changes the ledger, together with tables.
func (c *restCatalog) write(ctx context.Context, l *restLedger, s *step, all []tableChange) error {
	own, err := l.change(c.ledgerAt(), s, time.Now())
	if err != nil {
		return err
	}
	if err := c.p.fs.WriteFile(s.list, s.data); err != nil {
		return fmt.Errorf("write the ledger's list of files: %w", err)
	}
	if err := c.commit(ctx, append(all, own)); err != nil {
		// A small file that nothing names. Of a conflict that is not certain: it may be with this very commit, which a gateway has sent twice.
		if !uncertain(err) && !errors.Is(err, errMoved) {
			_ = c.p.fs.Remove(s.list)
		}
		return err
	}
	for _, list := range s.expired {
		_ = c.p.fs.Remove(list) // as above
	}
	return nil
}

// commit makes changes at the server: at once, or one after the other.
func (c *restCatalog) commit(ctx context.Context, all []tableChange) error {
	if len(all) > 1 && !c.p.ordered() {
		return conflict(c.client.do(ctx, http.MethodPost, "/transactions/commit", nil, map[string]any{"table-changes": all}, nil))
	}
	for _, x := range all {
		path := c.path(pointer{x.Identifier.Namespace[0], x.Identifier.Name})
		if err := conflict(c.client.do(ctx, http.MethodPost, path, nil, x, nil)); err != nil {
			return fmt.Errorf("table %s: %w", x.Identifier.Name, err)
		}
	}
	return nil
}

// conflict tells a commit whose requirements do not hold, or whose table is gone, from others that failed.
func conflict(err error) error {
	if e, ok := errors.AsType[*restError](err); ok && (e.status == http.StatusConflict || e.status == http.StatusNotFound && e.kind == "NoSuchTableException") {
		return fmt.Errorf("%w (%w)", errMoved, err)
	}
	return err
}
