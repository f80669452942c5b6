package progress

import (
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
)

// MaxEpochs bounds a list of epochs.
const MaxEpochs = 200

// EpochLine is one epoch in a list.
type EpochLine struct {
	Epoch uint64 `json:"epoch"`
	// State is skipped, in_flight, durable or committed. An id without a manifest between two that have one was given up.
	State string     `json:"state"`
	Kind  epoch.Kind `json:"kind,omitempty"`
	Fence uint64     `json:"fence,omitempty"`
	// Rows is how many rows writers staged for it.
	Rows uint64 `json:"rows"`
	// Took is from its trigger to the last acknowledgement, by the leader's clock; Phases are the longest of any subtask.
	Took      time.Duration            `json:"took,omitempty"`
	Phases    map[string]time.Duration `json:"phases,omitempty"`
	Triggered time.Time                `json:"triggered,omitzero"`
	Completed time.Time                `json:"completed,omitzero"`
	Digest    string                   `json:"digest,omitempty"`
}

// EpochList is the newest epochs of a job, newest first.
type EpochList struct {
	Job    string      `json:"job"`
	Epochs []EpochLine `json:"epochs"`
	// DetailsTruncated says that older ones are kept than are listed.
	DetailsTruncated bool `json:"detailsTruncated"`
}

// ListEpochs lists at most limit epochs: that in flight, those of the links, which are in order, and those that were given up in
// between.
func ListEpochs(h *job.Head, links []epoch.Link, limit int) EpochList {
	out := EpochList{Job: h.Job, Epochs: []EpochLine{}}
	add := func(l EpochLine) bool {
		if len(out.Epochs) == limit {
			out.DetailsTruncated = true
			return false
		}
		out.Epochs = append(out.Epochs, l)
		return true
	}
	above := h.NextEpoch
	if f := h.InFlight; f != nil {
		for id := above; id > f.Epoch+1; id-- {
			add(EpochLine{Epoch: uint64(id - 1), State: "skipped"})
		}
		add(EpochLine{Epoch: uint64(f.Epoch), State: "in_flight", Kind: f.Kind, Fence: uint64(h.Fence), Triggered: f.Triggered})
		above = f.Epoch
	}
	for _, l := range slices.Backward(links) {
		for id := above; id > l.Ref.Epoch+1; id-- {
			if !add(EpochLine{Epoch: uint64(id - 1), State: "skipped"}) {
				return out
			}
		}
		above = l.Ref.Epoch
		if !add(epochLine(h, l)) {
			return out
		}
	}
	return out
}

func epochLine(h *job.Head, l epoch.Link) EpochLine {
	m := l.Manifest
	out := EpochLine{
		Epoch: uint64(m.Epoch), State: "durable", Kind: m.Kind, Fence: uint64(m.Fence), Took: m.Completed.Sub(m.Triggered),
		Triggered: m.Triggered, Completed: m.Completed, Digest: l.Ref.Digest, Phases: make(map[string]time.Duration),
	}
	if m.Epoch <= h.Committed {
		out.State = "committed"
	}
	for _, s := range m.Sinks {
		for _, staged := range s.Staged {
			out.Rows += staged.Rows
		}
	}
	for _, s := range m.Subtasks {
		for phase, n := range s.Nanos {
			out.Phases[strings.ToLower(phase)] = max(out.Phases[strings.ToLower(phase)], time.Duration(n))
		}
	}
	return out
}
