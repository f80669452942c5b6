package envelope

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

// The header names. They are case-sensitive and complete: Parse refuses any other that begins with Weir-.
const (
	hdrVersion  = "Weir-V"
	hdrKind     = "Weir-Kind"
	hdrFence    = "Weir-Fence"
	hdrEpoch    = "Weir-Epoch"
	hdrSeq      = "Weir-Seq"
	hdrTable    = "Weir-Table"
	hdrRows     = "Weir-Rows"
	hdrPosition = "Weir-Position"
	hdrRef      = "Weir-Ref"
	hdrParent   = "traceparent"
	hdrState    = "tracestate"

	prefix = "Weir-"
)

// ErrMalformed says that a message is not an envelope of a version this build reads.
var ErrMalformed = errors.New("malformed envelope")

// OnChannel reports whether messages of this kind travel on data channels and are numbered there; all others are facts.
func (k Kind) OnChannel() bool {
	switch k {
	case Rows, Barrier, Watermark, Status, End:
		return true
	case Ready, Ack, Committed, Input, Drained, Failed, Released:
	}
	return false
}

func (k Kind) valid() bool {
	switch k {
	case Rows, Barrier, Watermark, Status, End, Ready, Ack, Committed, Input, Drained, Failed, Released:
		return true
	}
	return false
}

// Header is the text form, in the layout of the NATS client: one value per key. The payload travels beside it.
func (e *Envelope) Header() map[string][]string {
	h := make(map[string][]string, 8)
	set := func(k, v string) { h[k] = []string{v} }
	set(hdrVersion, strconv.Itoa(Version))
	set(hdrKind, string(e.Kind))
	set(hdrFence, e.Fence.String())
	if e.Epoch != 0 {
		set(hdrEpoch, e.Epoch.String())
	}
	if e.Seq != 0 {
		set(hdrSeq, strconv.FormatUint(e.Seq, 10))
	}
	if e.Table != "" {
		set(hdrTable, escape(e.Table))
	}
	if e.RowCount != 0 {
		set(hdrRows, strconv.Itoa(e.RowCount))
	}
	if e.Position != "" {
		set(hdrPosition, escape(e.Position))
	}
	if e.Ref != "" {
		set(hdrRef, escape(e.Ref))
	}
	for _, k := range [...]string{hdrParent, hdrState} {
		if v := e.Trace[k]; v != "" {
			set(k, v)
		}
	}
	return h
}

// Parse reads an envelope. Headers of others (Nats-...) are ignored; the payload is kept, not copied. Every error is an
// [ErrMalformed] and names the header, never the payload.
func Parse(h map[string][]string, payload []byte) (Envelope, error) {
	p := parser{h: h}
	if v, _ := p.text(hdrVersion); v != strconv.Itoa(Version) {
		return Envelope{}, fmt.Errorf("%w: version %q, this build reads %d", ErrMalformed, v, Version)
	}
	kind, _ := p.text(hdrKind)
	e := Envelope{Kind: Kind(kind), Payload: payload}
	if !e.Kind.valid() {
		return Envelope{}, fmt.Errorf("%w: unknown kind %q", ErrMalformed, kind)
	}
	if s, ok := p.text(hdrFence); ok {
		t, err := fence.ParseToken(s)
		p.note(err)
		e.Fence = t
	}
	if s, ok := p.text(hdrEpoch); ok {
		id, err := epoch.ParseID(s)
		p.note(err)
		e.Epoch = id
	}
	e.Seq = p.number(hdrSeq)
	e.RowCount = int(p.number(hdrRows))
	e.Table = p.escaped(hdrTable)
	e.Position = p.escaped(hdrPosition)
	e.Ref = p.escaped(hdrRef)
	for _, k := range [...]string{hdrParent, hdrState} {
		if v, ok := p.text(k); ok {
			if e.Trace == nil {
				e.Trace = make(map[string]string, 2)
			}
			e.Trace[k] = v
		}
	}
	p.strangers()
	p.note(e.check())
	if p.err != nil {
		return Envelope{}, fmt.Errorf("%w: %s: %w", ErrMalformed, e.Kind, p.err)
	}
	return e, nil
}

// check holds what must be true of an envelope of its kind.
func (e *Envelope) check() error {
	switch {
	case e.Fence == 0:
		return errors.New("no fence")
	case e.Kind.OnChannel() != (e.Seq != 0):
		return errors.New("a channel message has a number, a fact has none")
	case e.Kind == Barrier && e.Epoch == 0:
		return errors.New("a barrier names the epoch it ends")
	case e.Kind == Rows && (e.Table == "" || e.RowCount == 0):
		return errors.New("rows have a table and a count")
	case e.Kind != Rows && (e.Table != "" || e.RowCount != 0 || e.Ref != ""):
		return errors.New("only rows have a table, a count and a claim check")
	case e.Ref != "" && len(e.Payload) != 0:
		return errors.New("a claim check stands for the payload, both are present")
	}
	return nil
}

// parser collects the first problem.
type parser struct {
	h   map[string][]string
	err error
}

func (p *parser) note(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *parser) text(key string) (string, bool) {
	v, ok := p.h[key]
	if !ok {
		return "", false
	}
	if len(v) != 1 || v[0] == "" {
		p.note(fmt.Errorf("header %s: want exactly one value", key))
		return "", false
	}
	return v[0], true
}

// maxNumber keeps counts inside an int on every platform.
const maxNumber = 1<<63 - 1

func (p *parser) number(key string) uint64 {
	s, ok := p.text(key)
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 || n > maxNumber || strconv.FormatUint(n, 10) != s {
		p.note(fmt.Errorf("header %s: %q is not a canonical positive number", key, s))
		return 0
	}
	return n
}

func (p *parser) escaped(key string) string {
	s, ok := p.text(key)
	if !ok {
		return ""
	}
	v, err := unescape(s)
	if err != nil {
		p.note(fmt.Errorf("header %s: %w", key, err))
	}
	return v
}

func (p *parser) strangers() {
	for k := range p.h {
		if !strings.HasPrefix(k, prefix) {
			continue
		}
		switch k {
		case hdrVersion, hdrKind, hdrFence, hdrEpoch, hdrSeq, hdrTable, hdrRows, hdrPosition, hdrRef:
		default:
			p.note(fmt.Errorf("unknown header %s", k))
		}
	}
}
