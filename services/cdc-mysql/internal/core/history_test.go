package core

import (
	"strings"
	"testing"

	"weir.dev/weir/pkg/position"
)

const a, b = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"

func point(t *testing.T, family position.Type, text string) Point {
	t.Helper()
	p := Point{Family: family}
	var err error
	switch {
	case text == "":
	case family == position.MySQLGTID:
		p.GTIDs, err = position.ParseGTIDSet(text)
	case family == position.MariaDBGTID:
		p.Maria, err = position.ParseMariaGTIDSet(text)
	default:
		p.Binlog, err = position.ParseBinlogPos(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A log can be read on from a point when the server had everything before it and has the log of everything behind it.
func TestHistory(t *testing.T) {
	for _, c := range []struct {
		name, at, logged, purged string
		want                     Verdict
		says                     string
	}{
		{"all there", a + ":1-5", a + ":1-9", "", Readable, ""},
		{"purged and read", a + ":1-5", a + ":1-9", a + ":1-5", Readable, ""},
		{"purged and not read", a + ":1-5", a + ":1-9," + b + ":1", a + ":1-7," + b + ":1", Lost, a + ":6-7," + b + ":1 are purged"},
		{"a gap that was not read", a + ":1-2:4-9", a + ":1-9", a + ":1-3", Lost, a + ":3 are purged"},
		{"reset", a + ":1-5", a + ":1-2", "", Foreign, "the server has " + a + ":1-2"},
		{"another server", a + ":1-5", b + ":1-9", "", Foreign, b},
		{"domains", "0-1-5,1-1-3", "0-2-9,1-1-3", "0-1-4", Readable, ""},
		{"a domain that is purged", "0-1-5", "0-2-9", "0-1-6", Lost, "up to 0-1-6"},
		{"a domain that was not read and is purged", "0-1-5", "0-1-5,7-1-2", "7-1-1", Lost, "7-1-1"},
		{"a domain that lacks", "0-1-5", "0-1-4", "", Foreign, "0-1-4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			family := position.MySQLGTID
			if !strings.Contains(c.at, ":") {
				family = position.MariaDBGTID
			}
			at := point(t, family, c.at)
			h := History{Logged: point(t, family, c.logged), Purged: point(t, family, c.purged)}
			if got, says := h.Judge(&at); got != c.want || !strings.Contains(says, c.says) {
				t.Errorf("verdict %d, %q; want %d, %q", got, says, c.want, c.says)
			}
		})
	}
}

// Places in files are numbers within one series (O23), and a file that is shorter than the place is another one (O26).
func TestHistoryOfFiles(t *testing.T) {
	for at, want := range map[string]Verdict{
		"binlog.999998:4": Lost, "binlog.999999:100": Readable, "binlog.1000000:50": Readable, "binlog.1000000:51": Foreign,
		"binlog.1000001:4": Foreign, "mysql-bin.999999:4": Foreign,
	} {
		p := point(t, position.MySQLBinlog, at)
		h := History{Files: []position.BinlogPos{{Base: "binlog", Seq: 999_999, Pos: 100}, {Base: "binlog", Seq: 1_000_000, Pos: 50}}}
		if got, says := h.Judge(&p); got != want || (says == "") != (want == Readable) {
			t.Errorf("%s: verdict %d, %q; want %d", at, got, says, want)
		}
	}
	p := point(t, position.MySQLBinlog, "binlog.000001:4")
	if got, _ := (&History{}).Judge(&p); got != Foreign {
		t.Errorf("a server without files: verdict %d", got)
	}
}

// The oldest point is behind what is purged; where transactions have no names, at the first event of the first file.
func TestOldest(t *testing.T) {
	t.Parallel()
	h := &History{Purged: point(t, position.MySQLGTID, a+":1-5"), Logged: point(t, position.MySQLGTID, a+":1-9")}
	if at := h.Oldest(); at.GTIDs.String() != a+":1-5" {
		t.Errorf("oldest of GTIDs is %s", at.Public())
	}
	h = &History{Purged: Point{Family: position.MySQLBinlog}}
	for _, text := range []string{"binlog.000007:9000", "binlog.000008:200"} {
		h.Files = append(h.Files, point(t, position.MySQLBinlog, text).Binlog)
	}
	if at := h.Oldest(); at.Binlog.String() != "binlog.000007:4" {
		t.Errorf("oldest of files is %s", at.Public())
	}
}
