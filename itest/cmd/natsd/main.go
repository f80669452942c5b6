// Command natsd is the NATS server of the integration tests: the release that
// Weir embeds, as a process of its own, with the settings that Weir's promises
// name (every JetStream write is synced before it is acknowledged).
//
//	natsd -port 4222 -monitor 8222 -store DIR
package main

import (
	"flag"
	"fmt"
	"os"

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
	flag.Parse()
	if *store == "" {
		return fmt.Errorf("-store is required")
	}
	s, err := server.NewServer(&server.Options{
		ServerName:        "weir-itest",
		Host:              "127.0.0.1",
		Port:              *port,
		HTTPHost:          "127.0.0.1",
		HTTPPort:          *monitor,
		JetStream:         true,
		JetStreamMaxStore: *maxStore,
		StoreDir:          *store,
		SyncAlways:        true,
		MaxPayload:        8 << 20,
	})
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	// Start handles SIGTERM itself, by an orderly shutdown.
	s.Start()
	s.WaitForShutdown()
	return nil
}
