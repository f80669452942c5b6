package harness

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Connect opens a connection as the superuser.
func (p *Postgres) Connect(ctx context.Context, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, p.URL(database))
}

// Exec runs SQL as the superuser on a connection of its own. Without arguments
// it may be several statements, which then are one transaction.
func (p *Postgres) Exec(ctx context.Context, database, sql string, args ...any) error {
	conn, err := p.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql, args...)
	return err
}

// Value runs a query as the superuser and returns the only column of its only
// row.
func Value[T any](ctx context.Context, p *Postgres, database, sql string, args ...any) (T, error) {
	var value T
	conn, err := p.Connect(ctx, database)
	if err != nil {
		return value, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return value, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
}

// CreateDatabase makes an empty database.
func (p *Postgres) CreateDatabase(ctx context.Context, name string) error {
	return p.Exec(ctx, "postgres", "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
}

// CreateRole makes a login with a password of its own and the given attributes
// of CREATE ROLE, for example "REPLICATION"; none makes a plain login. Rights on
// objects are the caller's to grant.
func (p *Postgres) CreateRole(ctx context.Context, name, attributes string) (Role, error) {
	role := Role{Name: name, Password: rand.Text()}
	// DDL takes no parameters; the password is of letters and digits only.
	sql := fmt.Sprintf("CREATE ROLE %s LOGIN %s PASSWORD '%s'", pgx.Identifier{name}.Sanitize(), attributes, role.Password)
	if err := p.Exec(ctx, "postgres", sql); err != nil {
		return Role{}, fmt.Errorf("create role %s: %w", name, err)
	}
	return role, nil
}
