package position

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Origin is who numbers transactions of MySQL: a server, and since MySQL 8.3 a tag beside it.
type Origin struct {
	UUID [16]byte
	// Tag is empty or up to 32 letters, digits and underscores, in lower case.
	Tag string
}

// GTID is one transaction of MySQL, by the same name on every server. Numbers begin at 1.
type GTID struct {
	Origin

	N uint64
}

// IsZero reports whether this is no transaction.
func (g GTID) IsZero() bool { return g.N == 0 }

// String is MySQL's own form: uuid:n, or uuid:tag:n.
func (g GTID) String() string {
	b := appendUUID(nil, g.UUID)
	if g.Tag != "" {
		b = append(append(b, ':'), g.Tag...)
	}
	return string(strconv.AppendUint(append(b, ':'), g.N, 10))
}

// ParseGTID reads MySQL's form of one transaction.
func ParseGTID(s string) (GTID, error) {
	bad := func() (GTID, error) {
		return GTID{}, fmt.Errorf("parse GTID %q: want uuid:number or uuid:tag:number", s)
	}
	parts := strings.Split(s, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return bad()
	}
	uuid, ok := parseUUID(parts[0])
	if !ok {
		return bad()
	}
	g := GTID{Origin: Origin{UUID: uuid}}
	if len(parts) == 3 {
		if g.Tag, ok = parseTag(parts[1]); !ok {
			return bad()
		}
	}
	n, err := strconv.ParseUint(parts[len(parts)-1], 10, 63)
	if err != nil || n == 0 {
		return bad()
	}
	g.N = n
	return g, nil
}

// MariaGTID is one transaction of MariaDB. Within a domain numbers grow; which server numbered it says nothing about order.
type MariaGTID struct {
	Domain, Server uint32
	N              uint64
}

// String is MariaDB's own form: domain-server-number.
func (g MariaGTID) String() string { return fmt.Sprintf("%d-%d-%d", g.Domain, g.Server, g.N) }

// ParseMariaGTID reads MariaDB's form of one transaction.
func ParseMariaGTID(s string) (MariaGTID, error) {
	parts := strings.Split(s, "-")
	if len(parts) != 3 {
		return MariaGTID{}, fmt.Errorf("parse GTID %q: want domain-server-number", s)
	}
	domain, err1 := strconv.ParseUint(parts[0], 10, 32)
	server, err2 := strconv.ParseUint(parts[1], 10, 32)
	n, err3 := strconv.ParseUint(parts[2], 10, 64)
	if errors.Join(err1, err2, err3) != nil {
		return MariaGTID{}, fmt.Errorf("parse GTID %q: want domain-server-number", s)
	}
	return MariaGTID{Domain: uint32(domain), Server: uint32(server), N: n}, nil
}

// parseUUID reads 32 hexadecimal digits, with or without hyphens in their usual places.
func parseUUID(s string) (uuid [16]byte, ok bool) {
	if len(s) == 36 {
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return uuid, false
		}
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if len(s) != 32 {
		return uuid, false
	}
	_, err := hex.Decode(uuid[:], []byte(s))
	return uuid, err == nil
}

func appendUUID(dst []byte, uuid [16]byte) []byte {
	for i, part := range [][]byte{uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

// parseTag reads a tag; MySQL takes capitals for small letters.
func parseTag(s string) (tag string, ok bool) {
	if s == "" || len(s) > 32 || (s[0] >= '0' && s[0] <= '9') {
		return "", false
	}
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "", false
		}
	}
	return strings.ToLower(s), true
}
