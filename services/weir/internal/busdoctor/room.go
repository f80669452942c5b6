package busdoctor

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
)

var errNoJetStream = errors.New("its JetStream is off")

// Shares of a limit from which on people are told.
const (
	nearlyFull = 0.80
	asGoodFull = 0.95
)

// room compares what is used with the limits of the account.
func (e *examination) room() {
	r := e.Survey.Room
	e.quota("storage", "files", r.Storage, r.MaxStorage)
	e.quota("memory", "memory", r.Memory, r.MaxMemory)
	if r.MaxStreams > 0 && r.Streams >= r.MaxStreams {
		e.add(preflight.Finding{
			Check: "streams_limit", Status: preflight.Error, Found: fmt.Sprintf("%d of %d streams are made", r.Streams, r.MaxStreams), Code: fault.BusFull,
			Why:    "each attempt of a job needs a stream of its own",
			Remedy: &preflight.Remedy{Advice: "Raise max_streams of the account, or delete streams that nobody needs."},
		})
	}
	if r.BoundsRequired {
		e.add(preflight.Finding{
			Check: "max_bytes_required", Status: preflight.Error, Found: "the account takes no stream without a bound in bytes", Code: fault.BusStreamShape,
			Why:    "Weir bounds its data streams by messages, and does not bound its state",
			Remedy: &preflight.Remedy{Advice: "Set max_bytes_required: false for this account."},
		})
	}
}

func (e *examination) quota(check, where string, used uint64, limit int64) {
	if limit <= 0 {
		e.ok(check, "%s used in %s; the account has no limit, that of the server cannot be seen", config.Bytes(used).Rough(), where)
		return
	}
	share := float64(used) / float64(limit)
	found := fmt.Sprintf("%s of %s used in %s, %.0f %%", config.Bytes(used).Rough(), config.Bytes(limit).Rough(), where, 100*share)
	if share < nearlyFull {
		e.ok(check, "%s", found)
		return
	}
	f := preflight.Finding{
		Check: check, Status: preflight.Warning, Found: found, Why: "without room no epoch becomes durable, and no row moves",
		Remedy: &preflight.Remedy{
			Commands: []string{"nats stream ls -a"},
			Advice:   "Raise the JetStream limits of the account or the server, or delete the streams of the list that nobody needs.",
		},
	}
	if share >= asGoodFull {
		f.Status, f.Code = preflight.Error, fault.BusFull
	}
	e.add(f)
}

// letters looks at the bounds of dead letters: a job whose letters find no room waits.
func (e *examination) letters() {
	for i := range e.Survey.Streams {
		s := &e.Survey.Streams[i]
		name, _ := s.Owner()
		if s.Name != bus.DLQStream(name) || s.MaxBytes <= 0 || float64(s.Bytes) < nearlyFull*float64(s.MaxBytes) {
			continue
		}
		e.add(preflight.Finding{
			Check: "letters_room", Subject: s.Name, Status: preflight.Warning,
			Found: fmt.Sprintf("%s of %s are used by dead letters of job %s", config.Bytes(s.Bytes).Rough(), config.Bytes(s.MaxBytes).Rough(), name),
			Why:   "when it is full the job waits rather than lose a letter",
			Remedy: &preflight.Remedy{
				Commands: []string{fmt.Sprintf("nats stream edit %s --max-bytes=%d -f", s.Name, 2*s.MaxBytes)},
				Advice:   "Or replay or discard letters: weir dlq list " + name + ".",
			},
		})
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
