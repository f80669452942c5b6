package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir.dev/weir/pkg/fault"
)

// Ages and sizes of the base streams.
const (
	// factAge removes facts of attempts long gone. An open fact is repeated each second, so that age alone never
	// takes one away.
	factAge       = 10 * time.Minute
	eventAge      = 7 * 24 * time.Hour
	eventMaxBytes = 256 << 20
	// markerAge is how long the trace of an expired lease stays for watchers that start late.
	markerAge = time.Minute
	// Ages of leases that nobody chose. On a cluster the loss of a server silences the bus for 4 to 9 s until another
	// one leads its streams; nobody may be taken for dead meanwhile.
	leaseOnServer  = 3 * time.Second
	leaseOnCluster = 12 * time.Second
	// clusterReplicas is how many servers of a cluster keep what must survive one of them.
	clusterReplicas = 3
	// registryHistory lets a person see the last revisions of a head by `nats kv history`.
	registryHistory = 5
)

// BaseConfig shapes the streams and buckets every mesh needs.
type BaseConfig struct {
	// Replicas of everything but the data plane; zero takes 1 on one server and 3 on a cluster.
	Replicas int
	// LeaseTTL is the age at which a lease that is not renewed expires, at least one second; zero takes 3 s on one server
	// and 12 s on a cluster.
	LeaseTTL time.Duration
	// MemoryState keeps state and events in memory too: for tests only, a restart loses them.
	MemoryState bool
}

// on fills in what follows from the kind of server.
func (cfg BaseConfig) on(cluster bool) BaseConfig {
	replicas, lease := 1, leaseOnServer
	if cluster {
		replicas, lease = clusterReplicas, leaseOnCluster
	}
	if cfg.Replicas <= 0 {
		cfg.Replicas = replicas
	}
	if cfg.LeaseTTL <= 0 {
		cfg.LeaseTTL = lease
	}
	return cfg
}

// EnsureBase makes the streams and buckets every mesh needs, or brings their configuration up to date. It is idempotent
// and may run in several processes at once. Call it again after each reconnect: a memory stream vanishes with its
// server, configuration included. On a cluster it fails until as many servers are there as there are to be replicas.
func (c *Conn) EnsureBase(ctx context.Context, cfg BaseConfig) error {
	durable := jetstream.FileStorage
	if cfg.MemoryState {
		durable = jetstream.MemoryStorage
	}
	s, err := c.ctl.session()
	if err != nil {
		return fmt.Errorf("ensure the base: %w", err)
	}
	cfg = cfg.on(s.nc.ConnectedClusterName() != "")
	for _, sc := range []jetstream.StreamConfig{
		{
			Name: AckStream, Subjects: []string{"weir.ack.>"}, Storage: jetstream.MemoryStorage,
			Description:       "Weir: facts of subtasks for the coordinator, last per subject",
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, MaxAge: factAge,
		},
		{
			Name: ReportStream, Subjects: []string{"weir.report.*"}, Storage: jetstream.MemoryStorage,
			Description:       "Weir: progress reports, last per node",
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld, MaxAge: factAge,
		},
		{
			Name: EventStream, Subjects: []string{"weir.event.>"}, Storage: durable,
			Description: "Weir: what happened, for people",
			Discard:     jetstream.DiscardOld, MaxAge: eventAge, MaxBytes: eventMaxBytes,
		},
		{
			// One message per subject: a part that is stored twice after an unknown result replaces itself.
			Name: StateStream, Subjects: []string{"weir.state.>"}, Storage: durable,
			Description:       "Weir: state objects <life>.<fence>.<epoch>.<subtask>.<n>.<part>",
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld,
		},
	} {
		sc.Replicas = cfg.Replicas
		sc.AllowDirect = true
		sc.Metadata = map[string]string{metaRole: roleBase}
		if err := c.ensureStream(ctx, sc); err != nil {
			return err
		}
	}
	for _, kc := range []jetstream.KeyValueConfig{
		{
			Bucket: RegistryBucket, History: registryHistory, Storage: jetstream.FileStorage,
			Description: "Weir: heads, intents, specs, plans, manifests, savepoints",
		},
		{
			// History 1 and an age of the whole bucket, not of single keys: a compare-and-swap by Update drops a key's
			// own TTL, and with more history the server raises short ones to the marker's. Memory, because inside a
			// bubble expiry of a file bucket waits for the file system.
			Bucket: LeasesBucket, History: 1, Storage: jetstream.MemoryStorage,
			Description: "Weir: leader and node leases", TTL: cfg.LeaseTTL, LimitMarkerTTL: markerAge,
		},
		{
			Bucket: ProgressBucket, History: 1, Storage: jetstream.MemoryStorage,
			Description: "Weir: latest progress records",
		},
	} {
		kc.Replicas = cfg.Replicas
		kc.Metadata = map[string]string{metaRole: roleBase}
		if err := c.ensureBucket(ctx, kc); err != nil {
			return fmt.Errorf("ensure bucket %s: %w", kc.Bucket, c.assetError(err, "KV_"+kc.Bucket))
		}
	}
	return nil
}

// ensureStream creates a stream or updates its configuration. Two processes that create the same one at once both
// succeed, because equal configurations are the same request to the server.
func (c *Conn) ensureStream(ctx context.Context, sc jetstream.StreamConfig) error {
	s, ctx, cancel, err := c.ctl.limit(ctx)
	if err == nil {
		defer cancel()
		_, err = s.js.CreateOrUpdateStream(ctx, sc)
	}
	if err != nil {
		return fmt.Errorf("ensure stream %s: %w", sc.Name, c.assetError(foreign(err), sc.Name))
	}
	return nil
}

// assetError gives the failures that need a person their code and remedy.
func (c *Conn) assetError(err error, stream string) error {
	switch {
	case errors.Is(err, ErrShape):
		return fault.Wrap(err, fault.BusStreamShape, stream, err.Error(), "stream", stream)
	case errors.Is(err, ErrNoJetStream):
		return fault.Wrap(err, fault.BusNoJetStream, stream, err.Error())
	}
	return c.denied.explain(err, "$JS.API.STREAM.UPDATE."+stream, "$JS.API.STREAM.CREATE."+stream)
}

func (c *Conn) ensureBucket(ctx context.Context, kc jetstream.KeyValueConfig) error {
	s, ctx, cancel, err := c.ctl.limit(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	_, err = s.js.CreateOrUpdateKeyValue(ctx, kc)
	return foreign(err)
}
