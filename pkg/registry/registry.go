package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
)

// Registry is a process's access to the records. It is safe for concurrent use.
type Registry struct {
	conn   *bus.Conn
	reg    *bus.Bucket
	leases *bus.Bucket
	ttl    time.Duration
	heads  decoded
}

// Open opens the buckets, which a coordinator makes; bus.ErrNotFound while they are missing. ttl is how long a lease is
// trusted; zero, or more than the age at which the leases bucket drops what is not renewed, takes that age.
func Open(ctx context.Context, conn *bus.Conn, ttl time.Duration) (*Registry, error) {
	reg, err := conn.Bucket(ctx, bus.RegistryBucket)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	leases, err := conn.Bucket(ctx, bus.LeasesBucket)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	if age := leases.TTL(); ttl <= 0 || age > 0 && age < ttl {
		ttl = age
	}
	return &Registry{conn: conn, reg: reg, leases: leases, ttl: ttl}, nil
}

// TTL is how long a lease lives without renewal.
func (r *Registry) TTL() time.Duration { return r.ttl }

// JobOf takes a key such as jobs.shop.head apart into the job and the rest; ok is false for other keys.
func JobOf(key string) (name, part string, ok bool) {
	rest, ok := strings.CutPrefix(key, "jobs.")
	if !ok {
		return "", "", false
	}
	token, part, ok := strings.Cut(rest, ".")
	if !ok {
		return "", "", false
	}
	name, err := bus.UnescapeToken(token)
	return name, part, err == nil
}

// decode reads a record strictly enough to notice that it is not one of ours.
func decode(e bus.Entry, into any) error {
	if err := json.Unmarshal(e.Value, into); err != nil {
		return fault.Wrap(fmt.Errorf("decode %s: %w", e.Key, err), fault.RegCorrupt, e.Key, err.Error())
	}
	return nil
}

func checkVersion(key string, got, known int) error {
	if got > known {
		return fault.New(fault.RegVersionTooNew, key, fmt.Sprintf("version %d, this process knows up to %d", got, known))
	}
	return nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// once stores an immutable value. The same bytes already there are success, also when nobody knows who stored them;
// other bytes are bus.ErrConflict.
func (r *Registry) once(ctx context.Context, key string, value []byte) error {
	_, err := r.reg.Create(ctx, key, value)
	if err == nil || !errors.Is(err, bus.ErrConflict) && !errors.Is(err, bus.ErrUnknown) {
		return err
	}
	e, got := r.reg.Get(ctx, key)
	switch {
	case got != nil:
		return errors.Join(err, got)
	case bytes.Equal(e.Value, value):
		return nil
	}
	return fmt.Errorf("%s holds something else: %w", key, bus.ErrConflict)
}
