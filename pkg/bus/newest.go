package bus

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// newest asks a stream's leader, not a replica, for the newest message under a filter; the zero Entry when there is none.
func (l *link) newest(ctx context.Context, stream, filter string) (Entry, error) {
	var resp struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  string    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	err := l.request(ctx, "$JS.API.STREAM.MSG.GET."+stream, map[string]any{"last_by_subj": filter}, &resp)
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && int(api.ErrorCode) == codeMessageNotFound {
		return Entry{}, nil
	}
	if err != nil {
		return Entry{}, err
	}
	m := resp.Message
	e := Entry{Key: m.Subject, Value: m.Data, Revision: m.Seq, Time: m.Time}
	if m.Header == "" {
		return e, nil
	}
	raw, err := base64.StdEncoding.DecodeString(m.Header)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: header of message %d: %w", ErrDamaged, m.Seq, err)
	}
	h, err := nats.DecodeHeadersMsg(raw)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: header of message %d: %w", ErrDamaged, m.Seq, err)
	}
	e.Header = Header(h)
	return e, nil
}
