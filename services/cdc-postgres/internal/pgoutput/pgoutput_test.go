package pgoutput

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/position"
)

// corpus are messages that a server wrote.
func corpus(tb testing.TB) [][]byte {
	tb.Helper()
	data, err := os.ReadFile("testdata/server15.hex")
	if err != nil {
		tb.Fatal(err)
	}
	var messages [][]byte
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		m, err := hex.DecodeString(line)
		if err != nil {
			tb.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

// parse decodes any message and encodes it again where the form allows it; ok is false when it is refused.
func parse(b []byte) (again []byte, err error) {
	if len(b) == 0 {
		return nil, errors.New("empty")
	}
	switch b[0] {
	case KindBegin:
		m, err := ParseBegin(b)
		return encodeBegin(m), err
	case KindCommit:
		_, err := ParseCommit(b)
		return nil, err
	case KindRelation:
		m, err := ParseRelation(b)
		return encodeRelation(m), err
	case KindTruncate:
		_, err := ParseTruncate(b)
		return nil, err
	case KindInsert, KindUpdate, KindDelete:
		var c Change
		if err := c.Parse(b); err != nil {
			return nil, err
		}
		return encodeChange(&c), nil
	}
	return nil, ParseOther(b)
}

func encodeBegin(m Begin) []byte {
	b := binary.BigEndian.AppendUint64([]byte{KindBegin}, uint64(m.Final))
	b = binary.BigEndian.AppendUint64(b, uint64(m.Time+unixEpoch))
	return binary.BigEndian.AppendUint32(b, m.Xid)
}

// encodeRelation gives nil where the message has more than one spelling.
func encodeRelation(m Relation) []byte {
	if m.Schema == "pg_catalog" {
		return nil
	}
	b := binary.BigEndian.AppendUint32([]byte{KindRelation}, m.OID)
	b = append(append(b, m.Schema...), 0)
	b = append(append(b, m.Name...), 0, byte(m.Identity))
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Columns)))
	for _, c := range m.Columns {
		var flags byte
		if c.Key {
			flags = 1
		}
		b = append(append(append(b, flags), c.Name...), 0)
		b = binary.BigEndian.AppendUint32(b, c.TypeOID)
		b = binary.BigEndian.AppendUint32(b, uint32(c.Modifier))
	}
	return b
}

func encodeChange(c *Change) []byte {
	b := binary.BigEndian.AppendUint32([]byte{c.Kind}, c.Relation)
	if c.OldKind != OldNone {
		b = encodeRow(append(b, c.OldKind), c.Old)
	}
	if c.Kind != KindDelete {
		b = encodeRow(append(b, 'N'), c.New)
	}
	return b
}

func encodeRow(b []byte, cells []Cell) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(cells)))
	for _, c := range cells {
		b = append(b, c.Kind)
		if c.Kind == CellText || c.Kind == CellBinary {
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(c.Data))), c.Data...)
		}
	}
	return b
}

func TestServerMessagesSurviveDecoding(t *testing.T) {
	t.Parallel()
	seen := map[byte]int{}
	for _, m := range corpus(t) {
		again, err := parse(m)
		if err != nil {
			t.Errorf("%x: %v", m[:min(len(m), 16)], err)
		}
		if again != nil && !bytes.Equal(again, m) {
			t.Errorf("message %q is encoded as %x, was %x", m[0], again, m)
		}
		seen[m[0]]++
	}
	for _, kind := range "BCORYIUDTM" {
		if seen[byte(kind)] == 0 {
			t.Errorf("no message %q in the corpus", kind)
		}
	}
}

// A message cut short anywhere, or with a byte more, is refused; the error names the place and no content.
func TestEveryCutIsRefused(t *testing.T) {
	t.Parallel()
	for _, m := range corpus(t) {
		for n := 1; n < len(m); n += max(1, len(m)/200) {
			if _, err := parse(m[:n]); err == nil {
				t.Errorf("message %q cut to %d of %d bytes is accepted", m[0], n, len(m))
			}
		}
		_, err := parse(append(slices.Clip(m), 'Z'))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Message != m[0] || e.Offset > len(m)+1 {
			t.Errorf("message %q with a byte more: %v", m[0], err)
		}
	}
}

func TestTimesCountFrom1970(t *testing.T) {
	t.Parallel()
	b := encodeBegin(Begin{Final: 0x16B374D848, Time: 0, Xid: 7})
	if got := int64(binary.BigEndian.Uint64(b[9:])); got != -946684800000000 {
		t.Errorf("1970 is %d in the server's clock", got)
	}
	m, err := ParseBegin(b)
	if want := (Begin{Final: position.LSN(0x16B374D848), Xid: 7}); err != nil || m != want {
		t.Errorf("ParseBegin = %+v, %v", m, err)
	}
}

func TestRowsAreNotAllocated(t *testing.T) {
	var c Change
	messages := corpus(t)
	all := func() {
		for _, m := range messages {
			if m[0] == KindInsert || m[0] == KindUpdate || m[0] == KindDelete {
				if err := c.Parse(m); err != nil {
					t.Error(err)
				}
			}
		}
	}
	all()
	if n := testing.AllocsPerRun(10, all); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range corpus(f) {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		again, err := parse(b)
		if err != nil || again == nil {
			return
		}
		if b[0] == KindRelation { // undefined flag bits are not kept
			if _, err := parse(again); err != nil {
				t.Fatalf("own encoding is refused: %v", err)
			}
			return
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("encoded as %x", again)
		}
	})
}
