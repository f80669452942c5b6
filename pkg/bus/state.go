package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

// Sizes of state messages.
const (
	// partSize keeps a part well below file streams' limit of 32 MiB per record and makes fsyncs few.
	partSize = 4 << 20
	// partReserve of max_payload is left for headers.
	partReserve = 4 << 10
	// partsAtOnce are read at once; with partSize they stay far below the server's budget per connection.
	partsAtOnce = 4
	// partTimeout leaves a slow disk or a thin line time for several parts of full size.
	partTimeout = 30 * time.Second
)

// StateRef names an object in the state stream.
type StateRef struct {
	// Subject of [StateSubject], without part numbers.
	Subject string `json:"subject"`
	Size    int64  `json:"size"`
	// Digest is the SHA-256 of the whole object in lower-case hexadecimal digits. It is cryptographic because
	// manifests are chained and audited by it.
	Digest string `json:"digest"`
}

// PutState stores an object as parts "<subject>.<n>" of at most 4 MiB, less where max_payload is smaller, with several
// parts under way, and returns its reference when all are stored. An object exists only for who holds a reference: after
// an error some parts may be there; writing the object again replaces them.
func (c *Conn) PutState(ctx context.Context, subject string, data []byte) (StateRef, error) {
	p, err := c.NewPublisher(ctx, PublisherConfig{AckTimeout: partTimeout})
	if err != nil {
		return StateRef{}, fmt.Errorf("put state %s: %w", subject, err)
	}
	defer p.Close()
	size := int(min(partSize, p.l.payload()-partReserve))
	n := 0
	for rest := data; n == 0 || len(rest) > 0; n++ {
		part := rest[:min(size, len(rest))]
		rest = rest[len(part):]
		if _, err := p.Publish(ctx, subject+"."+strconv.Itoa(n), nil, part); err != nil {
			return StateRef{}, fmt.Errorf("put state %s: %w", subject, err)
		}
	}
	sum := sha256.Sum256(data) // while the parts are under way
	if err := p.Flush(ctx); err != nil {
		return StateRef{}, fmt.Errorf("put state %s: %w", subject, err)
	}
	return StateRef{Subject: subject, Size: int64(len(data)), Digest: hex.EncodeToString(sum[:])}, nil
}

// GetState reads an object and checks size and digest: [ErrDamaged] when they differ, [ErrNotFound] when a part is
// missing.
func (c *Conn) GetState(ctx context.Context, ref StateRef) ([]byte, error) {
	data, err := c.getState(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("get state %s: %w", ref.Subject, err)
	}
	return data, nil
}

func (c *Conn) getState(ctx context.Context, ref StateRef) ([]byte, error) {
	l, release, err := c.take(ctx, &c.receiving, receiversPerLane, "data in")
	if err != nil {
		return nil, err
	}
	defer release()
	part := func(ctx context.Context, n int) ([]byte, error) {
		s := ref.Subject + "." + strconv.Itoa(n)
		var m *nats.Msg
		err := c.Stored(ctx, func() (err error) {
			m, err = l.directLast(ctx, StateStream, s, partTimeout)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", n, c.denied.explain(err, "$JS.API.DIRECT.GET."+StateStream+"."+s))
		}
		return m.Data, nil
	}
	// All parts but the last have the size of the first.
	first, err := part(ctx, 0)
	if err != nil {
		return nil, err
	}
	if int64(len(first)) > ref.Size || len(first) == 0 && ref.Size > 0 {
		return nil, fmt.Errorf("%w: the first part has %d bytes of %d", ErrDamaged, len(first), ref.Size)
	}
	parts := [][]byte{first}
	if int64(len(first)) < ref.Size {
		per := int64(len(first))
		parts = make([][]byte, (ref.Size+per-1)/per)
		parts[0] = first
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(partsAtOnce)
		for n := 1; n < len(parts); n++ {
			g.Go(func() (err error) {
				parts[n], err = part(ctx, n)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	data := first
	if len(parts) > 1 {
		data = bytes.Join(parts, nil)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); int64(len(data)) != ref.Size || got != ref.Digest {
		return nil, fmt.Errorf("%w: %d bytes with %s, want %d with %s", ErrDamaged, len(data), got, ref.Size, ref.Digest)
	}
	return data, nil
}

// PurgeState removes all parts of all objects under a prefix of whole tokens, such as [StateEpochPrefix] or one object's
// subject, and returns the number of parts. Purging nothing is success.
func (c *Conn) PurgeState(ctx context.Context, prefix string) (uint64, error) {
	n, err := c.ctl.purge(ctx, StateStream, prefix+".>")
	if err != nil {
		return 0, fmt.Errorf("purge state %s: %w", prefix, c.denied.explain(err, "$JS.API.STREAM.PURGE."+StateStream))
	}
	return n, nil
}

// ListState lists the subjects of the objects under a prefix of whole tokens, sorted. Objects of which only some parts
// were stored are among them.
func (c *Conn) ListState(ctx context.Context, prefix string) ([]string, error) {
	counts, err := c.ctl.subjects(ctx, StateStream, prefix+".>")
	if err != nil {
		return nil, fmt.Errorf("list state %s: %w", prefix, c.denied.explain(err, "$JS.API.STREAM.INFO."+StateStream))
	}
	found := make([]string, 0, len(counts))
	for s := range counts {
		found = append(found, s[:strings.LastIndexByte(s, '.')])
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// subjects lists the subjects of a stream with their message counts. The server gives at most 100,000 at a time.
func (l *link) subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	all := make(map[string]uint64)
	for {
		var page struct {
			Total int `json:"total"`
			State struct {
				Subjects map[string]uint64 `json:"subjects"`
			} `json:"state"`
		}
		req := map[string]any{"subjects_filter": filter, "offset": len(all)}
		if err := l.request(ctx, "$JS.API.STREAM.INFO."+stream, req, &page); err != nil {
			return nil, err
		}
		before := len(all)
		maps.Copy(all, page.State.Subjects)
		if len(all) >= page.Total || len(all) == before {
			return all, nil
		}
	}
}
