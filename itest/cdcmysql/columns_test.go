package cdcmysql

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// hides are the columns of a source of tables of people.
func hides(t *testing.T, exclude []string, masks map[string]spec.Mask) spec.Columns {
	t.Helper()
	parse := func(name string) spec.ColumnPattern {
		p, err := spec.ParseColumnPattern("people*.*." + name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	c := spec.Columns{Salt: config.NewSecret("${SALT}")}
	for _, name := range exclude {
		c.Exclude = append(c.Exclude, parse(name))
	}
	for name, m := range masks {
		c.Mask = append(c.Mask, spec.MaskedColumns{Columns: parse(name), Mask: m})
	}
	return c
}

// What is left out or masked leaves the source on neither path, and what is hashed has the same hash on both.
func TestColumns(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*harness.MySQL{"mysql": mysql, "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(
				t, server, "SET NAMES utf8mb4", "CREATE DATABASE people", "CREATE TABLE people.t (a text NOT NULL, b varchar(20) CHARACTER SET latin1, id int PRIMARY KEY, c decimal(8,2), d date NOT NULL, e int unsigned, f varchar(9))",
				"INSERT INTO people.t VALUES ('gone', 'é', 1, 12.5, '2024-02-03', 7, 'shown')",
			)
			c := &spec.MySQLSource{
				Readers: 1, Snapshot: spec.Snapshot{Mode: spec.SnapshotInitial},
				Columns: hides(t, []string{"a"}, map[string]spec.Mask{"b": spec.MaskHash, "c": spec.MaskHash, "d": spec.MaskNull, "e": spec.MaskRedact}),
			}
			a, err := openSource(t, server, nil, c, "people.*")
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(" people.t b=%s c=%s d=NULL e=[redacted] f=shown id=", hashOf("é"), hashOf("12.50"))
			wantRows(t, a.take(t, 1), "read"+want+"1")
			run(t, server, "SET NAMES utf8mb4", "INSERT INTO people.t VALUES ('gone', 'é', 2, 12.5, '2024-02-03', 7, 'shown')", "UPDATE people.t SET a = 'x', id = 3 WHERE id = 1", "UPDATE people.t SET b = NULL WHERE id = 3")
			wantRows(
				t, a.take(t, 4), "insert"+want+"2", "delete"+want+"1", "insert"+want+"3",
				fmt.Sprintf("update_after people.t b=NULL c=%s d=NULL e=[redacted] f=shown id=3", hashOf("12.50")),
			)
			for _, columns := range []spec.Columns{
				hides(t, nil, map[string]spec.Mask{"id": spec.MaskHash}), hides(t, []string{"id"}, nil), hides(t, []string{"mistyped"}, nil),
			} {
				c.Columns, c.Tables = columns, nil
				_, err := openSource(t, server, nil, c, "people.*")
				if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.SrcColumns {
					t.Errorf("%v, want %s", err, fault.SrcColumns)
				}
			}
		})
	}
}

// hashOf is the mask of a text.
func hashOf(text string) string {
	mac := hmac.New(sha256.New, []byte("pepper"))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}
