package audit

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
)

// session connects with the settings that text forms depend on (A2).
func session(ctx context.Context, url string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"TimeZone": "UTC", "DateStyle": "ISO", "IntervalStyle": "postgres",
		"bytea_output": "hex", "extra_float_digits": "1", "application_name": "audit",
	})
	return pgx.ConnectConfig(ctx, cfg)
}
