package server

import (
	"context"
	"fmt"
	"strconv"

	"weir.dev/weir/pkg/fault"
)

// Replicas are the server ids that nobody may come with: that of the server itself, and those of replicas that have registered with
// it, each with the words for who has it. Connections of [Target.Dump] do not register. A user without the right to list replicas
// (MariaDB: REPLICATION MASTER ADMIN) learns of the server's own only.
func (t *Target) Replicas(ctx context.Context) (map[uint32]string, error) {
	s, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f, err := s.Facts(ctx)
	if err != nil {
		return nil, err
	}
	sql := "SHOW SLAVE HOSTS"
	if !f.MariaDB && f.Version >= 8_00_22 {
		sql = "SHOW REPLICAS"
	}
	used := make(map[uint32]string)
	add := func(id []byte, who string) error {
		n, err := strconv.ParseUint(string(id), 10, 32)
		if err != nil {
			return fmt.Errorf("server id of a replica: %w", err)
		}
		used[uint32(n)] = who
		return nil
	}
	row, err := s.One(ctx, "SELECT @@GLOBAL.server_id")
	if err != nil {
		return nil, err
	}
	if err := add([]byte(row[0]), "the server itself"); err != nil {
		return nil, err
	}
	err = s.Query(ctx, sql, func(c [][]byte) error {
		if string(c[2]) == "0" { // who reads the log without registering, as we do
			return nil
		}
		return add(c[0], fmt.Sprintf("a replica of the server, host %q, port %s", c[1], c[2]))
	})
	if fault.CodeOf(err) == fault.MYNoRight {
		err = nil
	}
	return used, err
}
