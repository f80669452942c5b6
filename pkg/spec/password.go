package spec

import (
	"net/url"
	"strings"

	"weir.dev/weir/pkg/config"
)

// reference is what config.Secret.Literals puts in place of a reference.
const reference = "\x00"

// checkPostgresURL looks at the literal beginning only: a reference may stand for all of it.
func checkPostgresURL(d *config.Decoder, n *config.Node, s config.Secret) {
	text := s.Literals()
	if strings.HasPrefix(text, reference) || text == "" {
		return
	}
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		d.Problem(n, "the url must begin with postgres:// or be a reference: ${PGURL}")
	}
}

// literalPassword reports whether a connection string holds a password that is not a reference.
func literalPassword(s config.Secret) bool {
	text := s.Literals()
	if _, rest, ok := strings.Cut(text, "://"); ok {
		authority := rest
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			authority = rest[:i]
		}
		if i := strings.LastIndexByte(rest, '@'); i >= len(authority) {
			authority = rest[:i+1] // an unescaped slash in the password
		}
		if i := strings.LastIndexByte(authority, '@'); i >= 0 {
			if _, password, ok := strings.Cut(authority[:i], ":"); ok && isLiteral(password) {
				return true
			}
		}
		_, query, _ := strings.Cut(rest, "?")
		for pair := range strings.SplitSeq(query, "&") {
			key, value, _ := strings.Cut(pair, "=")
			if name, err := url.QueryUnescape(key); err == nil && isPasswordKey(name) && isLiteral(value) {
				return true
			}
		}
		return false
	}
	for field := range strings.FieldsSeq(text) {
		key, value, ok := strings.Cut(field, "=")
		if ok && isPasswordKey(key) && isLiteral(value) {
			return true
		}
	}
	return false
}

func isPasswordKey(k string) bool {
	return strings.EqualFold(k, "password") || strings.EqualFold(k, "sslpassword")
}

func isLiteral(s string) bool { return strings.Trim(s, reference) != "" }

// LiteralPasswords returns the paths of the connection strings which hold a password in clear text. A mesh refuses a
// spec that has any; a process that serves only its own machine warns.
func (j *Job) LiteralPasswords() []string {
	var paths []string
	note := func(path string, secrets []config.Secret) {
		for _, s := range secrets {
			if literalPassword(s) {
				paths = append(paths, path)
			}
		}
	}
	for _, s := range j.Sources {
		note("sources."+s.Name+".url", s.Config.secrets())
	}
	for _, s := range j.Sinks {
		note("sinks."+s.Name+".url", s.Config.secrets())
	}
	return paths
}
