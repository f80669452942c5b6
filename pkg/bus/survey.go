package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Survey is what a client can see of the server and of everything that JetStream keeps for its account. What cannot be
// seen is absent, never guessed.
type Survey struct {
	Server ServerSeen `json:"server"`
	User   *UserSeen  `json:"user,omitempty"`
	// Room is absent while JetStream does not answer; then NoJetStream says why.
	Room        *Room  `json:"room,omitempty"`
	NoJetStream string `json:"noJetStream,omitempty"`
	// Streams are all of the account, by name; buckets are the streams KV_<bucket>. Unlisted says why there are none.
	Streams  []StreamSeen `json:"streams,omitempty"`
	Unlisted string       `json:"unlisted,omitempty"`
	// Clock is absent while the server has told no time.
	Clock *Clock `json:"clock,omitempty"`
}

// ServerSeen is the server of the control connection.
type ServerSeen struct {
	Name       string `json:"name"`
	ID         string `json:"id"`
	Version    string `json:"version"`
	Cluster    string `json:"cluster,omitempty"`
	MaxPayload int64  `json:"maxPayload"`
	// Others are further servers of the cluster that it names.
	Others []string `json:"others,omitempty"`
}

// UserSeen is the user of the connection, as the server knows it.
type UserSeen struct {
	User    string `json:"user"`
	Account string `json:"account"`
	// Restricted says that the server has sent permissions; without, everything of the account is allowed.
	Restricted bool      `json:"restricted,omitempty"`
	Publish    SubjectAC `json:"publish,omitzero"`
	Subscribe  SubjectAC `json:"subscribe,omitzero"`
}

// SubjectAC lists the patterns that a user is allowed and denied; no allowed one means all.
type SubjectAC struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// Permits reports whether every subject that the pattern matches is allowed and none is denied.
func (a SubjectAC) Permits(pattern string) bool {
	if slices.ContainsFunc(a.Deny, func(d string) bool { return Overlap(d, pattern) }) {
		return false
	}
	return len(a.Allow) == 0 || slices.ContainsFunc(a.Allow, func(p string) bool { return covers(p, pattern) })
}

// covers reports whether each subject of the second pattern is one of the first.
func covers(wide, narrow string) bool {
	w, n := strings.Split(wide, "."), strings.Split(narrow, ".")
	for i, t := range w {
		switch {
		case t == ">":
			return i < len(n)
		case i >= len(n), n[i] == ">", t != "*" && t != n[i]:
			return false
		}
	}
	return len(w) == len(n)
}

// Overlap reports whether some subject is of both patterns.
func Overlap(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		switch {
		case x[i] == ">" || y[i] == ">":
			return true
		case x[i] != y[i] && x[i] != "*" && y[i] != "*":
			return false
		}
	}
	return len(x) == len(y)
}

// Room is what the account uses of JetStream, and its limits; a negative limit is none.
type Room struct {
	Memory     uint64 `json:"memory"`
	MaxMemory  int64  `json:"maxMemory"`
	Storage    uint64 `json:"storage"`
	MaxStorage int64  `json:"maxStorage"`
	Streams    int    `json:"streams"`
	MaxStreams int    `json:"maxStreams"`
	Consumers  int    `json:"consumers"`
	// MaxConsumers is that of the account for each stream.
	MaxConsumers int `json:"maxConsumers"`
	// BoundsRequired says that the account takes no stream without a bound in bytes.
	BoundsRequired bool `json:"boundsRequired,omitempty"`
}

// StreamSeen is one stream as it is.
type StreamSeen struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Subjects    []string          `json:"subjects,omitempty"`
	Storage     string            `json:"storage"` // file or memory
	Retention   string            `json:"retention"`
	Replicas    int               `json:"replicas"`
	MaxBytes    int64             `json:"maxBytes"` // negative: no bound
	Metadata    map[string]string `json:"metadata,omitempty"`
	Created     time.Time         `json:"created"`
	Messages    uint64            `json:"messages"`
	Bytes       uint64            `json:"bytes"`
	FirstSeq    uint64            `json:"firstSeq"`
	LastSeq     uint64            `json:"lastSeq"`
	Consumers   int               `json:"consumers"`
	// Leader and Peers are those of a cluster.
	Leader string     `json:"leader,omitempty"`
	Peers  []PeerSeen `json:"peers,omitempty"`
}

// Owner is the job whose stream this is by its own metadata, and the attempt; empty for those of the whole mesh and those
// that are not Weir's.
func (s *StreamSeen) Owner() (job, attempt string) { return s.Metadata[metaJob], s.Metadata[metaFence] }

// Ours reports whether Weir has made the stream.
func (s *StreamSeen) Ours() bool { return s.Metadata[metaRole] != "" || s.Metadata[metaJob] != "" }

// PeerSeen is a follower of a stream's leader.
type PeerSeen struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	Offline bool   `json:"offline,omitempty"`
	Lag     uint64 `json:"lag,omitempty"`
}

// Clock compares the server's clock with this host's.
type Clock struct {
	// Ahead is how far the server's is; the truth is within Error of it, half of what the answer took.
	Ahead time.Duration `json:"ahead"`
	Error time.Duration `json:"error"`
}

// ConsumerSeen is one consumer as it is.
type ConsumerSeen struct {
	Stream      string            `json:"stream"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Filter      string            `json:"filter,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Created     time.Time         `json:"created"`
	// Pending are messages that were not delivered, Unacknowledged those that were and are in work.
	Pending        uint64 `json:"pending"`
	Unacknowledged int    `json:"unacknowledged"`
	Redelivered    int    `json:"redelivered,omitempty"`
	Delivered      uint64 `json:"delivered"`
	AckFloor       uint64 `json:"ackFloor"`
}

// Survey looks at the server, the user, the limits of the account and all of its streams. It changes nothing. An error
// means that the server did not answer at all; what it refuses is noted in the survey.
func (c *Conn) Survey(ctx context.Context) (*Survey, error) {
	s, err := c.ctl.session()
	if err != nil {
		return nil, err
	}
	v := &Survey{Server: ServerSeen{
		Name: s.nc.ConnectedServerName(), ID: s.nc.ConnectedServerId(), Version: s.nc.ConnectedServerVersion(),
		Cluster: s.nc.ConnectedClusterName(), MaxPayload: s.nc.MaxPayload(), Others: s.nc.DiscoveredServers(),
	}}
	v.User = c.seenUser(ctx)
	if err := c.seeRoom(ctx, v); err != nil {
		return nil, err
	}
	if v.Room == nil {
		return v, nil
	}
	began := time.Now()
	streams, at, err := c.seenStreams(ctx)
	switch {
	case errors.Is(err, ErrDenied), errors.Is(err, ErrUnknown), errors.Is(err, ErrNoResponders):
		v.Unlisted = c.denied.explain(err, "$JS.API.STREAM.LIST").Error()
	case err != nil:
		return nil, fmt.Errorf("list streams: %w", err)
	}
	v.Streams = streams
	if !at.IsZero() {
		half := time.Since(began) / 2
		v.Clock = &Clock{Ahead: at.Sub(began.Add(half)), Error: half}
	}
	return v, nil
}

// seenUser asks who this is; servers before 2.10 do not tell.
func (c *Conn) seenUser(ctx context.Context) *UserSeen {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	var answer struct {
		Data struct {
			User, Account string
			Permissions   *struct{ Publish, Subscribe *SubjectAC }
		}
	}
	if err := c.ctl.plain(ctx, "$SYS.REQ.USER.INFO", nil, &answer); err != nil {
		return nil
	}
	u := &UserSeen{User: answer.Data.User, Account: answer.Data.Account}
	if p := answer.Data.Permissions; p != nil {
		if p.Publish != nil {
			u.Publish = *p.Publish
		}
		if p.Subscribe != nil {
			u.Subscribe = *p.Subscribe
		}
		u.Restricted = len(u.Publish.Allow)+len(u.Publish.Deny)+len(u.Subscribe.Allow)+len(u.Subscribe.Deny) > 0
	}
	return u
}

func (c *Conn) seeRoom(ctx context.Context, v *Survey) error {
	var info struct {
		jetstream.Tier
		Tiers map[string]jetstream.Tier `json:"tiers"`
	}
	err := c.ctl.request(ctx, "$JS.API.INFO", nil, &info)
	switch {
	case errors.Is(err, ErrNoJetStream), errors.Is(err, ErrNoResponders), errors.Is(err, ErrUnknown):
		v.NoJetStream = c.denied.explain(err, "$JS.API.INFO").Error()
		return nil
	case err != nil:
		return fmt.Errorf("ask for the limits of JetStream: %w", err)
	}
	v.Room = &Room{
		Memory: info.Memory, MaxMemory: info.Limits.MaxMemory, Storage: info.Store, MaxStorage: info.Limits.MaxStore,
		Streams: info.Streams, MaxStreams: info.Limits.MaxStreams, Consumers: info.Consumers, MaxConsumers: info.Limits.MaxConsumers,
		BoundsRequired: info.Limits.MaxBytesRequired,
	}
	return nil
}

// seenStreams lists all streams with the time of the server's first answer.
func (c *Conn) seenStreams(ctx context.Context) (all []StreamSeen, at time.Time, err error) {
	for {
		var page struct {
			Total   int                     `json:"total"`
			Streams []*jetstream.StreamInfo `json:"streams"`
		}
		if err := c.ctl.request(ctx, "$JS.API.STREAM.LIST", map[string]any{"offset": len(all)}, &page); err != nil {
			return all, at, err
		}
		for _, i := range page.Streams {
			if at.IsZero() {
				at = i.TimeStamp
			}
			all = append(all, streamSeen(i))
		}
		if len(page.Streams) == 0 || len(all) >= page.Total {
			slices.SortFunc(all, func(a, b StreamSeen) int { return strings.Compare(a.Name, b.Name) })
			return all, at, nil
		}
	}
}

func streamSeen(i *jetstream.StreamInfo) StreamSeen {
	s := StreamSeen{
		Name: i.Config.Name, Description: i.Config.Description, Subjects: i.Config.Subjects,
		Storage: strings.ToLower(i.Config.Storage.String()), Retention: strings.ToLower(i.Config.Retention.String()),
		Replicas: i.Config.Replicas, MaxBytes: i.Config.MaxBytes, Metadata: i.Config.Metadata, Created: i.Created,
		Messages: i.State.Msgs, Bytes: i.State.Bytes, FirstSeq: i.State.FirstSeq, LastSeq: i.State.LastSeq,
		Consumers: i.State.Consumers,
	}
	if i.Cluster != nil {
		s.Leader = i.Cluster.Leader
		for _, p := range i.Cluster.Replicas {
			s.Peers = append(s.Peers, PeerSeen{Name: p.Name, Current: p.Current, Offline: p.Offline, Lag: p.Lag})
		}
	}
	return s
}

// Consumers lists the consumers of a stream, by name.
func (c *Conn) Consumers(ctx context.Context, stream string) ([]ConsumerSeen, error) {
	var all []ConsumerSeen
	for {
		var page struct {
			Total     int                       `json:"total"`
			Consumers []*jetstream.ConsumerInfo `json:"consumers"`
		}
		if err := c.ctl.request(ctx, "$JS.API.CONSUMER.LIST."+stream, map[string]any{"offset": len(all)}, &page); err != nil {
			return nil, fmt.Errorf("list the consumers of %s: %w", stream, c.denied.explain(err, "$JS.API.CONSUMER.LIST."+stream))
		}
		for _, i := range page.Consumers {
			all = append(all, ConsumerSeen{
				Stream: i.Stream, Name: i.Name, Description: i.Config.Description, Filter: i.Config.FilterSubject,
				Metadata: i.Config.Metadata, Created: i.Created, Pending: i.NumPending, Unacknowledged: i.NumAckPending,
				Redelivered: i.NumRedelivered, Delivered: i.Delivered.Stream, AckFloor: i.AckFloor.Stream,
			})
		}
		if len(page.Consumers) == 0 || len(all) >= page.Total {
			slices.SortFunc(all, func(a, b ConsumerSeen) int { return strings.Compare(a.Name, b.Name) })
			return all, nil
		}
	}
}

// plain is a request whose answer has not the form of the JetStream API.
func (l *link) plain(ctx context.Context, subject string, body []byte, into any) error {
	s, ctx, cancel, err := l.limit(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	m, err := s.nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return foreign(err)
	}
	if m.Header.Get("Status") == "503" {
		return ErrNoResponders
	}
	return json.Unmarshal(m.Data, into)
}
