package cdcpostgres

import (
	"context"
	"log/slog"
	"slices"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
)

// again takes an order to copy tables anew, once: they are described as they are today, which is how the copy will find
// them, and the assigner has the log wait for them. log is where the log was, nil when it was not begun.
func (s *setup) again(ctx context.Context, log *readerState) error {
	order := s.cfg.Again
	if order == nil || order.Seq <= s.state.Again {
		return nil
	}
	s.news = true
	s.state.Again = order.Seq
	var tables []*catalog.Table
	last := make(map[uint32]schemaVersion)
	for i := range s.state.Tables {
		t := &s.state.Tables[i]
		if len(order.Tables) > 0 && !slices.Contains(order.Tables, t.String()) {
			continue
		}
		now, err := catalog.ByOID(ctx, s.conn, t.OID)
		if err != nil {
			return s.target.Fault(err)
		}
		if now == nil || now.Name != t.TableName {
			s.cfg.Logger.WarnContext(ctx, "table is not copied anew: it was dropped or renamed", slog.String("table", t.String()))
			continue
		}
		tables = append(tables, now)
		last[t.OID] = t.sent(log)
	}
	if len(tables) == 0 {
		return nil
	}
	if err := noIdentity(s.where, tables); err != nil {
		return err
	}
	fresh, err := s.capture(ctx, tables, last)
	if err != nil {
		return err
	}
	for _, f := range fresh {
		i := slices.IndexFunc(s.state.Tables, func(t capturedTable) bool { return t.OID == f.OID })
		s.state.Tables[i] = f
	}
	s.assigner.Tables(s.tasks())
	for _, f := range fresh {
		s.standing = s.assigner.Again(f.id()) || s.standing
		s.cfg.Logger.InfoContext(ctx, "table is copied anew", slog.String("table", f.String()), slog.Uint64("order", order.Seq))
	}
	if s.veil == nil || s.source.Publication != "" {
		return nil
	}
	return s.resend(ctx)
}

// sent is the schema version in which rows of the table were last sent.
func (t *capturedTable) sent(log *readerState) schemaVersion {
	if log != nil {
		if v, ok := log.Schemas[rows.TableID(t.String())]; ok && v.Version >= t.Number {
			return v
		}
	}
	return schemaVersion{Version: t.Number, Fingerprint: t.Fingerprint, Columns: t.Version}
}
