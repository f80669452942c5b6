package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// lastMany is the multi-last read behind GetMany.
func (c *Conn) lastMany(ctx context.Context, stream, prefix string, subjects []string) ([]Entry, error) {
	ms, err := c.ctl.directMulti(ctx, stream, subjects)
	if errors.Is(err, errTooMany) && len(subjects) == 1 {
		return c.collect(ctx, watchSpec{stream: stream, filter: subjects[0], prefix: prefix, lastOnly: true})
	}
	if err != nil {
		return nil, err
	}
	es := make([]Entry, 0, len(ms))
	for _, m := range ms {
		if removal(m.Header) != Put {
			continue
		}
		e, err := storedEntry(m, prefix)
		if err != nil {
			return nil, err
		}
		es = append(es, e)
	}
	sortEntries(es)
	return es, nil
}

func sortEntries(es []Entry) {
	slices.SortFunc(es, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
}

// directLast reads the last message of a subject.
func (l *link) directLast(ctx context.Context, stream, subject string, most time.Duration) (*nats.Msg, error) {
	s, ctx, cancel, err := l.limitTo(ctx, most)
	if err != nil {
		return nil, err
	}
	defer cancel()
	m, err := s.nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
	if err != nil {
		return nil, foreign(err)
	}
	switch status := m.Header.Get("Status"); status {
	case "":
		return m, nil
	case "404":
		return nil, ErrNotFound
	default:
		return nil, fmt.Errorf("direct get refused: %s %s", status, m.Header.Get("Description"))
	}
}

// errTooMany: more than 1024 subjects match a multi-last read.
var errTooMany = fmt.Errorf("%w: more than %d subjects match", ErrTooBig, multiLastLimit)

// directMulti reads the last message of every subject that matches, as one snapshot isolated from writes.
func (l *link) directMulti(ctx context.Context, stream string, subjects []string) ([]*nats.Msg, error) {
	s, ctx, cancel, err := l.limit(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	body, err := json.Marshal(map[string]any{"multi_last": subjects})
	if err != nil {
		return nil, err
	}
	inbox := s.nc.NewInbox()
	replies := make(chan *nats.Msg, multiLastLimit+16)
	sub, err := s.subscribe(inbox, replies)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := s.publish(&nats.Msg{Subject: "$JS.API.DIRECT.GET." + stream, Reply: inbox, Data: body}); err != nil {
		return nil, err
	}
	var found []*nats.Msg
	for {
		select {
		case m := <-replies:
			switch status := m.Header.Get("Status"); status {
			case "":
				found = append(found, m)
			case "204":
				if m.Header.Get(hdrPending) != "0" {
					return nil, fmt.Errorf("%w: the values exceed the server's max_pending", ErrTooBig)
				}
				return found, nil
			case "404":
				return nil, nil
			case "413":
				return nil, errTooMany
			case "503":
				return nil, ErrNoResponders
			default:
				return nil, fmt.Errorf("direct get refused: %s %s", status, m.Header.Get("Description"))
			}
		case <-ctx.Done():
			return nil, foreign(context.Cause(ctx))
		}
	}
}

// storedEntry reads a message that came by direct get: what was its subject is a header there.
func storedEntry(m *nats.Msg, prefix string) (Entry, error) {
	rev, err := strconv.ParseUint(m.Header.Get(hdrSequence), 10, 64)
	if err != nil {
		return Entry{}, fmt.Errorf("read sequence of stored message: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(hdrTime))
	if err != nil {
		return Entry{}, fmt.Errorf("read time of stored message: %w", err)
	}
	e := Entry{
		Key: strings.TrimPrefix(m.Header.Get(hdrSubject), prefix), Value: m.Data, Revision: rev, Time: at, Header: Header{},
	}
	for k, v := range m.Header {
		if !strings.HasPrefix(k, "Nats-") {
			e.Header[k] = v
		}
	}
	return e, nil
}

// removal tells a value from the marker of its end.
func removal(h nats.Header) UpdateKind {
	switch {
	case h.Get(hdrMarker) == markerMaxAge:
		return Expired
	case h.Get(hdrMarker) != "", h.Get(hdrOperation) == opDelete, h.Get(hdrOperation) == opPurge:
		return Deleted
	}
	return Put
}
