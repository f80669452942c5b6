package nats

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/position"
)

// markSubject is where marks are. Events have three tokens behind the prefix, so no table can have it.
func markSubject(prefix string) string { return prefix + "._weir" }

// markVersion is the version of a mark's JSON form.
const markVersion = 1

// markKind says why a mark was written. What it holds is complete in each kind.
type markKind string

const (
	claimed   markKind = "claim"
	committed markKind = "commit"
	under     markKind = "part" // an epoch is under way
)

// mark is the ledger's row as the stream holds it.
type mark struct {
	Version int         `json:"version"`
	Kind    markKind    `json:"kind"`
	Job     string      `json:"job"`
	Sink    string      `json:"sink"`
	Life    string      `json:"life"`
	Fence   fence.Token `json:"fence"`
	// Ref is the newest epoch whose events are all there, Prev the one before it.
	Ref  epoch.Ref `json:"ref,omitzero"`
	Prev epoch.Ref `json:"prev,omitzero"`
	// Open is the epoch that is there in part.
	Open progress `json:"open,omitzero"`
	// Events, Rows, Dead and Positions belong to Ref.
	Events    uint64                       `json:"events"`
	Rows      uint64                       `json:"rows"`
	Dead      uint64                       `json:"dead,omitempty"`
	Positions map[string]position.Position `json:"positions,omitempty"`
	At        time.Time                    `json:"at"`
}

// progress is how far an epoch has got: the events before Next are there.
type progress struct {
	Epoch epoch.ID `json:"epoch"`
	Next  uint64   `json:"next"`
}

// parseMark reads a mark.
func parseMark(e bus.Entry) (mark, error) {
	var m mark
	if err := json.Unmarshal(e.Value, &m); err != nil {
		return mark{}, fmt.Errorf("read mark %d: %w", e.Revision, err)
	}
	if m.Version != markVersion || m.Life == "" {
		return mark{}, fmt.Errorf("read mark %d: version %d", e.Revision, m.Version)
	}
	return m, nil
}

// The headers of an event.
const (
	headerJob   = "Weir-Job"
	headerLife  = "Weir-Life"
	headerFence = "Weir-Fence"
	headerEpoch = "Weir-Epoch"
	headerIndex = "Weir-Index"
	headerSeq   = "Weir-Seq"
	headerType  = "Content-Type"
)

// label is what the header of an event says of its place.
type label struct {
	life  string
	fence fence.Token
	at    progress // Next is the number of the event plus one
}

// parseLabel reads the header of an event; ok is false for a message that is none.
func parseLabel(h bus.Header) (l label, ok bool) {
	var err error
	if l.life = h.Get(headerLife); l.life == "" {
		return label{}, false
	}
	if l.fence, err = fence.ParseToken(h.Get(headerFence)); err != nil {
		return label{}, false
	}
	if l.at.Epoch, err = epoch.ParseID(h.Get(headerEpoch)); err != nil {
		return label{}, false
	}
	index, err := strconv.ParseUint(h.Get(headerIndex), 10, 64)
	l.at.Next = index + 1
	return l, err == nil
}
