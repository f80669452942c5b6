// Command natsd is the NATS server of the integration tests: the release that
// Weir embeds, as a process of its own, with the settings that Weir's promises
// name (every JetStream write is synced before it is acknowledged).
//
//	natsd -port 4222 -monitor 8222 -store DIR
//	natsd ... -name n1 -cluster 6222 -routes nats://127.0.0.1:6223,nats://127.0.0.1:6224
//
// With -cluster it is one server of a cluster, whose servers find out within seconds when one of them is frozen.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
}

func run() error {
	port := flag.Int("port", 4222, "client `port` on 127.0.0.1")
	monitor := flag.Int("monitor", 8222, "HTTP monitoring `port` on 127.0.0.1")
	store := flag.String("store", "", "JetStream `folder` (required)")
	maxStore := flag.Int64("max-store", 0, "limit of JetStream's files in `bytes`; 0 is the disk's own")
	name := flag.String("name", "weir-itest", "`name` of the server")
	cluster := flag.Int("cluster", 0, "`port` for the other servers of its cluster on 127.0.0.1; 0 is no cluster")
	routes := flag.String("routes", "", "`URLs` of the other servers, with commas between")
	flag.Parse()
	if *store == "" {
		return fmt.Errorf("-store is required")
	}
	opts := &server.Options{
		ServerName:        *name,
		Host:              "127.0.0.1",
		Port:              *port,
		HTTPHost:          "127.0.0.1",
		HTTPPort:          *monitor,
		JetStream:         true,
		JetStreamMaxStore: *maxStore,
		StoreDir:          *store,
		SyncAlways:        true,
		MaxPayload:        8 << 20,
	}
	if *cluster != 0 {
		// By default a server notices only after a minute or more that another one hangs. Clients know all servers, and are
		// not told of ways around a relay.
		opts.Cluster = server.ClusterOpts{
			Name: "weir-itest", Host: "127.0.0.1", Port: *cluster, PingInterval: time.Second, MaxPingsOut: 2,
			NoAdvertise: true,
		}
		opts.Routes = server.RoutesFromStr(*routes)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	// Start handles SIGTERM itself, by an orderly shutdown.
	s.Start()
	s.WaitForShutdown()
	return nil
}
