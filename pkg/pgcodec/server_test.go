package pgcodec_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
)

// sample is one value as a server wrote it in both forms.
type sample struct {
	oid    uint32
	typmod int32
	text   string
	binary []byte
}

// serverSamples reads testdata/server.tsv, written by PostgreSQL 15 under the session settings we pin:
// type OID, modifier, text form as a JSON string, binary form in hex.
func serverSamples(t testing.TB) []sample {
	t.Helper()
	f, err := os.Open("testdata/server.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []sample
	for in := bufio.NewScanner(f); in.Scan(); {
		part := strings.Split(in.Text(), "\t")
		oid, err1 := strconv.ParseUint(part[0], 10, 32)
		typmod, err2 := strconv.ParseInt(part[1], 10, 32)
		s := sample{oid: uint32(oid), typmod: int32(typmod)}
		err3 := json.Unmarshal([]byte(part[2]), &s.text)
		s.binary, err = hex.DecodeString(part[3])
		for _, err := range []error{err, err1, err2, err3} {
			if err != nil {
				t.Fatalf("%q: %v", in.Text(), err)
			}
		}
		out = append(out, s)
	}
	if len(out) < 150 {
		t.Fatalf("only %d samples", len(out))
	}
	return out
}

// decode reads one cell into a batch of one row.
func decode(t testing.TB, c pgcodec.Codec, f pgcodec.Format, cell []byte) (*rows.Batch, error) {
	t.Helper()
	s, err := rows.NewSchema("t", 1, pgcodec.Origin, []rows.Column{{Name: "v", Type: c.Type(), Source: c.SourceType(), Nullable: true}})
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	d, err := c.Decoder(b, 0, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := d(cell); err != nil {
		return nil, err
	}
	b.EndRow(rows.Meta{Op: rows.OpRead})
	out, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// I1, I2 and I3 against what a real server says.
func TestServerSamples(t *testing.T) {
	for _, s := range serverSamples(t) {
		c := pgcodec.ForOID(s.oid, s.typmod, "")
		t.Run(c.SourceType()+" "+s.text[:min(len(s.text), 40)], func(t *testing.T) {
			fromText, err := decode(t, c, pgcodec.Text, []byte(s.text))
			if err != nil {
				t.Fatal(err)
			}
			fromBinary, err := decode(t, c, pgcodec.Binary, s.binary)
			if err != nil {
				t.Fatal(err)
			}
			a, b := string(fromText.AppendRowJSON(nil, 0)), string(fromBinary.AppendRowJSON(nil, 0))
			if a != b || !c0(fromText).Equal(fromText.Column(0), 0, fromBinary.Column(0), 0) {
				t.Errorf("from text   %s\nfrom binary %s", a, b)
			}
			for _, batch := range []*rows.Batch{fromText, fromBinary} {
				got, ok := batch.AppendText(nil, 0, 0)
				want := s.text
				if c.Type().Kind == rows.KindBool {
					want = map[string]string{"t": "true", "f": "false"}[s.text]
				}
				if _, special := batch.SpecialText(0, 0); !special && c.SourceType() == "boolean[]" {
					want = strings.NewReplacer("t", "true", "f", "false").Replace(s.text)
				}
				if string(got) != want || !ok {
					t.Errorf("text is %q, the server's is %q", got, s.text)
				}
				if c.SourceType() == "oid" {
					continue // staged as bigint
				}
				field, err := pgcodec.BindField(batch, 0)(nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				binaryForm := string(s.binary)
				if c.Type().Kind == rows.KindList {
					binaryForm = want // staged as text
				}
				if n := binary.BigEndian.Uint32(field); int(n) != len(field)-4 || string(field[4:]) != binaryForm {
					t.Errorf("field is %x, the server's is %x", field, s.binary)
				}
			}
		})
	}
}

func c0(b *rows.Batch) rows.Codec { return b.Schema().Codec(0) }
