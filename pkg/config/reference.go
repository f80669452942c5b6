package config

import (
	"os"
	"regexp"
	"strings"

	"weir.dev/weir/pkg/fault"
)

// Lookup finds the values of references on the node that needs them.
type Lookup struct {
	Env  func(name string) (string, bool)
	File func(path string) ([]byte, error)
}

// OS looks in the environment and the file system of this process.
func OS() Lookup { return Lookup{Env: os.LookupEnv, File: os.ReadFile} }

// piece is a stretch of literal text or one reference.
type piece struct {
	literal  string
	env      string // ${VAR}
	fallback string // ${VAR:-fallback}
	hasElse  bool
	file     string // ${file:/path}
}

func (p piece) isReference() bool { return p.env != "" || p.file != "" }

// name is the reference as written, without its fallback, which may be a secret.
func (p piece) name() string {
	if p.file != "" {
		return "${file:" + p.file + "}"
	}
	return "${" + p.env + "}"
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// split cuts a text into pieces; "$${" stands for a literal "${". ok is false when a reference is malformed.
func split(s string) (pieces []piece, ok bool) {
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			pieces = append(pieces, piece{literal: lit.String()})
			lit.Reset()
		}
	}
	for len(s) > 0 {
		switch {
		case strings.HasPrefix(s, "$${"):
			lit.WriteString("${")
			s = s[3:]
		case strings.HasPrefix(s, "${"):
			inside, rest, found := strings.Cut(s[2:], "}")
			if !found {
				return nil, false
			}
			p, valid := reference(inside)
			if !valid {
				return nil, false
			}
			flush()
			pieces = append(pieces, p)
			s = rest
		default:
			lit.WriteByte(s[0])
			s = s[1:]
		}
	}
	flush()
	return pieces, true
}

func reference(inside string) (piece, bool) {
	if path, ok := strings.CutPrefix(inside, "file:"); ok {
		return piece{file: path}, strings.HasPrefix(path, "/")
	}
	name, fallback, hasElse := strings.Cut(inside, ":-")
	return piece{env: name, fallback: fallback, hasElse: hasElse}, variable.MatchString(name)
}

// resolve returns the value of a text with its references replaced. The error names the reference, never a value.
func resolve(raw string, l Lookup) (string, error) {
	pieces, ok := split(raw)
	if !ok {
		return "", fault.New(fault.ConfBadReference, "", "the text has a ${ that does not begin a reference")
	}
	var b strings.Builder
	for _, p := range pieces {
		switch {
		case p.file != "":
			data, err := l.File(p.file)
			if err != nil {
				return "", fault.Wrap(err, fault.ConfSecretFile, p.name(), "the file cannot be read", "ref", p.file)
			}
			b.WriteString(strings.TrimRight(string(data), "\r\n"))
		case p.env != "":
			v, found := l.Env(p.env)
			switch {
			case found && v != "":
				b.WriteString(v)
			case p.hasElse:
				b.WriteString(p.fallback)
			default:
				return "", fault.New(fault.ConfUnresolved, p.name(), "the variable is not set or empty", "ref", p.env)
			}
		default:
			b.WriteString(p.literal)
		}
	}
	return b.String(), nil
}

// redact keeps the references of a text and hides everything else.
func redact(raw string) string {
	pieces, ok := split(raw)
	if !ok {
		return hidden
	}
	var b strings.Builder
	for _, p := range pieces {
		switch {
		case p.hasElse && p.fallback != "":
			b.WriteString("${" + p.env + ":-" + hidden + "}")
		case p.isReference():
			b.WriteString(p.name())
		default:
			b.WriteString(hidden)
		}
	}
	return b.String()
}

// Resolve returns the value of a text with its references replaced. An error names the reference, never a value.
func (l Lookup) Resolve(raw string) (string, error) { return resolve(raw, l) }
