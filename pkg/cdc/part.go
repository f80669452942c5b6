package cdc

import "fmt"

const partVersion = 1

// part is what an epoch keeps of one reader.
type part struct {
	reports   []report
	spools    []spooled
	following bool
	log       []byte // nil: handed out and not opened, so it begins at its start
	paused    bool
	tables    []TableID // emptied since the log was last handed out
}

type spooled struct {
	chunk ChunkID
	state []byte
}

func (p part) encode() []byte {
	w := writer{b: []byte{partVersion}}
	w.uint(uint64(len(p.reports)))
	for _, r := range p.reports {
		w.report(r)
	}
	w.uint(uint64(len(p.spools)))
	for _, s := range p.spools {
		w.id(s.chunk)
		w.bytes(s.state)
	}
	w.bool(p.following)
	w.bytes(p.log)
	w.bool(p.paused)
	w.tables(p.tables)
	return w.b
}

// decodePart reads a reader's part; nothing at all is the part of a reader that was told nothing.
func decodePart(data []byte) (part, error) {
	var p part
	if len(data) == 0 {
		return p, nil
	}
	r := reader{b: data}
	if v := r.byte(); v != partVersion && r.err == nil {
		return p, fmt.Errorf("%w: part version %d, this build reads %d", ErrMalformed, v, partVersion)
	}
	for range r.count() {
		p.reports = append(p.reports, r.report())
	}
	for range r.count() {
		p.spools = append(p.spools, spooled{chunk: r.id(), state: r.bytes()})
	}
	p.following, p.log, p.paused, p.tables = r.bool(), r.bytes(), r.bool(), r.tables()
	if !p.following && (p.log != nil || p.paused || p.tables != nil) {
		r.fail("a log that is not there")
	}
	return p, r.end()
}
