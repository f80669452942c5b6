package busdoctor

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
)

// part is a stream that every mesh has.
type part struct{ stream, storage, holds string }

// parts lists them, buckets by the streams behind them.
func parts() []part {
	var all []part
	for _, a := range bus.Assets() {
		if strings.Contains(a.Name, "<") {
			continue
		}
		name := a.Name
		if a.Kind == "bucket" {
			name = "KV_" + name
		}
		all = append(all, part{stream: name, storage: a.Storage, holds: a.Purpose})
	}
	return all
}

func (e *examination) stream(name string) *bus.StreamSeen {
	i := slices.IndexFunc(e.Survey.Streams, func(s bus.StreamSeen) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &e.Survey.Streams[i]
}

// listed reports whether the streams of the account could be seen.
func (e *examination) listed() bool {
	if e.Survey.Unlisted == "" {
		return true
	}
	e.add(preflight.Finding{
		Check: "streams", Status: preflight.Unknown, Found: "this user may not list streams: " + e.Survey.Unlisted,
		Why:    "missing, foreign and left-over streams cannot be told",
		Remedy: &preflight.Remedy{Advice: "Use a user that may publish to $JS.API.STREAM.LIST."},
	})
	return false
}

// base looks for the streams that every mesh has: all there, Weir's own, and of the right kind.
func (e *examination) base() {
	const check = "base_streams"
	var missing []part
	sound := 0
	for _, p := range parts() {
		s := e.stream(p.stream)
		switch {
		case s == nil:
			missing = append(missing, p)
		case !s.Ours():
			e.add(preflight.Finding{
				Check: check, Subject: s.Name, Status: preflight.Error, Code: fault.BusStreamShape,
				Found: "a stream of this name is there and Weir has not made it: " + described(s),
				Why:   "a coordinator does not start beside it",
				Remedy: &preflight.Remedy{
					Commands: []string{"nats stream rm " + s.Name + " -f"},
					Advice:   "When it is in use, give Weir an account of its own instead.",
				},
			})
		case s.Storage != p.storage:
			e.add(preflight.Finding{
				Check: check, Subject: s.Name, Status: preflight.Error, Code: fault.BusStreamShape,
				Found: fmt.Sprintf("it is kept in %s, Weir needs %s", s.Storage, p.storage),
				Why:   "a stream cannot move; a coordinator does not start on it",
				Remedy: &preflight.Remedy{
					Commands: []string{"nats stream rm " + s.Name + " -f"},
					Advice:   "Stop all coordinators first. What it holds is lost: " + p.holds + ".",
				},
			})
		default:
			sound++
		}
	}
	switch {
	case len(missing) == len(parts()):
		e.ok(check, "none is there: no coordinator has been here yet")
	case len(missing) > 0:
		for _, p := range missing {
			e.add(preflight.Finding{
				Check: check, Subject: p.stream, Status: preflight.Warning, Found: "it is missing: " + p.holds,
				Why:    "a coordinator makes it when it starts, and when its connection comes back",
				Remedy: &preflight.Remedy{Advice: "Restart one coordinator."},
			})
		}
	case sound == len(parts()):
		e.ok(check, "all %d are there", sound)
	}
}

func described(s *bus.StreamSeen) string {
	text := strings.Join(s.Subjects, " ") + ", " + s.Storage
	if s.Description != "" {
		text += ", " + s.Description
	}
	return text
}

// foreign looks for streams of others that store what Weir publishes: no stream of Weir's can be made on their subjects.
func (e *examination) foreign() {
	names := make(map[string]bool)
	for _, p := range parts() {
		names[p.stream] = true
	}
	for i := range e.Survey.Streams {
		s := &e.Survey.Streams[i]
		if s.Ours() || names[s.Name] {
			continue
		}
		at := slices.IndexFunc(s.Subjects, func(subject string) bool {
			return bus.Overlap(subject, "weir.>") || bus.Overlap(subject, "$KV."+bus.RegistryBucket+".>") || bus.Overlap(subject, "$KV."+bus.LeasesBucket+".>")
		})
		if at < 0 {
			continue
		}
		e.add(preflight.Finding{
			Check: "foreign_stream", Subject: s.Name, Status: preflight.Error, Code: fault.BusStreamShape,
			Found: "it stores " + s.Subjects[at] + ", and Weir has not made it",
			Why:   "two streams cannot store one subject: Weir's own cannot be made beside it",
			Remedy: &preflight.Remedy{
				Commands: []string{"nats stream rm " + s.Name + " -f"},
				Advice:   "When it is in use, take " + s.Subjects[at] + " off it, or give Weir an account of its own.",
			},
		})
	}
}

// copies compares replicas with the cluster, and looks whether they follow.
func (e *examination) copies() {
	const check = "replicas"
	single, sick := []string{}, false
	for i := range e.Survey.Streams {
		s := &e.Survey.Streams[i]
		if !s.Ours() {
			continue
		}
		if e.Survey.Server.Cluster != "" && s.Replicas < 2 && s.Metadata["weir"] == "base" {
			single = append(single, s.Name)
		}
		for _, peer := range s.Peers {
			if !peer.Offline && peer.Current {
				continue
			}
			sick = true
			found := fmt.Sprintf("its copy on %s is %d entries behind", peer.Name, peer.Lag)
			if peer.Offline {
				found = "its copy on " + peer.Name + " is offline"
			}
			e.add(preflight.Finding{
				Check: check, Subject: s.Name, Status: preflight.Warning, Found: found,
				Why:    "with one more server lost nothing can be written any more",
				Remedy: &preflight.Remedy{Commands: []string{"nats stream info " + s.Name}, Advice: "Bring that server back."},
			})
		}
	}
	switch {
	case len(single) > 0:
		e.add(preflight.Finding{
			Check: check, Status: preflight.Warning,
			Found: fmt.Sprintf("%s have one copy in cluster %s", strings.Join(single, ", "), e.Survey.Server.Cluster),
			Why:   "the loss of one server stops every job, and the loss of its disk loses them",
			Remedy: &preflight.Remedy{
				Advice: "Start every coordinator with replicas: 3 (WEIR_COORDINATOR_REPLICAS=3); it changes the streams that are there.",
			},
		})
	case sick:
	case e.Survey.Server.Cluster == "":
		e.ok(check, "one server, one copy")
	default:
		e.ok(check, "cluster %s: every copy follows", e.Survey.Server.Cluster)
	}
}
