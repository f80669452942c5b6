package busdoctor

import (
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/preflight"
)

// Group is the group of all findings here.
const Group = "nats"

// Patient is what is known of a server.
type Patient struct {
	Survey *bus.Survey
	// Embedded says that the server is the one that `weir up` carries, whose settings are Weir's own.
	Embedded bool
	// Monitor is what the server's monitoring address says; nil when nobody asked. MonitorWhy says why an address that
	// was named gave nothing.
	Monitor    *Monitor
	MonitorWhy string
	// Jobs are the heads of all jobs, also of those that are deleted; JobsKnown is false when they could not be read.
	Jobs      []job.Head
	JobsKnown bool
	// Lives counts the state objects by life; nil when they could not be read.
	Lives map[string]int
}

// Examine makes the findings, in the order in which they matter.
func Examine(p Patient) []preflight.Finding {
	e := examination{Patient: p}
	e.version()
	if !e.jetStream() {
		return e.findings
	}
	e.payload()
	e.sync()
	e.rights()
	if e.listed() {
		e.base()
		e.foreign()
		e.copies()
	}
	e.room()
	e.letters()
	e.clock()
	e.leftovers()
	return e.findings
}

// examination collects findings.
type examination struct {
	Patient

	findings []preflight.Finding
}

func (e *examination) ok(check, format string, v ...any) {
	e.findings = append(e.findings, preflight.Finding{Group: Group, Check: check, Status: preflight.OK, Found: fmt.Sprintf(format, v...)})
}

func (e *examination) add(f preflight.Finding) {
	f.Group = Group
	e.findings = append(e.findings, f)
}

// The oldest server that has what Weir uses, and the oldest without a known loss of acknowledged writes.
var (
	oldest = [3]int{2, 11, 0}
	sound  = [3]int{2, 14, 4}
)

func (e *examination) version() {
	s := e.Survey.Server
	where := s.Name
	if s.Cluster != "" {
		where += " of cluster " + s.Cluster
	}
	v, ok := parseVersion(s.Version)
	found := fmt.Sprintf("NATS %s, server %s", s.Version, where)
	switch {
	case !ok:
		e.add(preflight.Finding{
			Check: "version", Status: preflight.Unknown, Found: found, Why: "the version cannot be read",
			Remedy: &preflight.Remedy{Advice: "Compare it with " + versionText(sound) + " yourself."},
		})
	case before(v, oldest):
		e.add(preflight.Finding{
			Check: "version", Status: preflight.Error, Found: found, Code: fault.BusTooOld,
			Why:    "leases need keys that expire with a trace, and snapshots of keys need reads of many at once: both came with " + versionText(oldest),
			Remedy: &preflight.Remedy{Advice: "Upgrade the server to " + versionText(sound) + " or newer."},
		})
	case before(v, sound):
		e.add(preflight.Finding{
			Check: "version", Status: preflight.Warning, Found: found,
			Why:    "servers before " + versionText(sound) + " are known to lose acknowledged writes when they are killed or lose power",
			Remedy: &preflight.Remedy{Advice: "Upgrade the server to " + versionText(sound) + " or newer."},
		})
	default:
		e.ok("version", "%s", found)
	}
}

// parseVersion reads "2.15.2" and "2.15.0-RC.1"; a release candidate counts as its release.
func parseVersion(s string) (v [3]int, ok bool) {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "-")
	n, err := fmt.Sscanf(s, "%d.%d.%d", &v[0], &v[1], &v[2])
	return v, err == nil && n == 3
}

func before(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func versionText(v [3]int) string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (e *examination) jetStream() bool {
	if e.Survey.Room != nil {
		e.ok("jetstream", "JetStream is on: %d streams, %d consumers", e.Survey.Room.Streams, e.Survey.Room.Consumers)
		return true
	}
	e.add(preflight.Finding{
		Check: "jetstream", Status: preflight.Error, Found: e.Survey.NoJetStream, Code: fault.BusNoJetStream,
		Why: "everything that Weir must not lose is kept there",
		Remedy: &preflight.Remedy{
			Advice: "Give the server `jetstream { store_dir: ..., sync_interval: always }` and, with accounts, `jetstream: enabled` to this one; " +
				"a user with narrow rights needs $JS.API.INFO.",
		},
	})
	return false
}

// wantedPayload is what the server that Weir carries takes.
const wantedPayload = 8 << 20

func (e *examination) payload() {
	switch has := e.Survey.Server.MaxPayload; {
	case has < bus.MinPayload:
		e.add(preflight.Finding{
			Check: "max_payload", Status: preflight.Error, Found: fmt.Sprintf("max_payload is %d bytes", has), Code: fault.BusMaxPayload,
			Why:    fmt.Sprintf("a manifest or an acknowledgement may be one message of up to %d bytes", bus.MinPayload),
			Remedy: &preflight.Remedy{Advice: fmt.Sprintf("Set max_payload: %d in the server's configuration and reload it.", wantedPayload)},
		})
	case has < wantedPayload:
		e.ok("max_payload", "max_payload is %s: enough; %s move bigger batches", config.Bytes(has).Rough(), config.Bytes(wantedPayload).Rough())
	default:
		e.ok("max_payload", "max_payload is %s", config.Bytes(has).Rough())
	}
}

// clockOff is from which difference on the ages and lags that people see mislead them.
const clockOff = 2 * time.Second

func (e *examination) clock() {
	c := e.Survey.Clock
	if c == nil {
		e.ok("clock", "the server has told no time; nothing rests on it")
		return
	}
	word, off := "ahead of", c.Ahead
	if off < 0 {
		word, off = "behind", -off
	}
	found := fmt.Sprintf("the server's clock is %s %s this host's, give or take %s", off.Round(time.Millisecond), word, c.Error.Round(time.Millisecond))
	if off-c.Error <= clockOff {
		e.ok("clock", "%s", found)
		return
	}
	e.add(preflight.Finding{
		Check: "clock", Status: preflight.Warning, Found: found,
		Why:    "nothing is decided by it, but ages and lags that are shown are off by as much",
		Remedy: &preflight.Remedy{Advice: "Synchronise the clocks of both hosts."},
	})
}

// leftovers are streams and state of jobs that are gone.
func (e *examination) leftovers() {
	if !e.JobsKnown {
		return
	}
	heads := make(map[string]job.Head, len(e.Jobs))
	lives := make(map[string]bool, len(e.Jobs))
	for _, h := range e.Jobs {
		heads[h.Job] = h
		lives[h.Life] = h.Phase != job.Deleted
	}
	for i := range e.Survey.Streams {
		s := &e.Survey.Streams[i]
		name, attempt := s.Owner()
		if name == "" {
			continue
		}
		if why := leftover(heads, name, attempt); why != "" {
			e.add(preflight.Finding{
				Check: "leftover_stream", Subject: s.Name, Status: preflight.Warning,
				Found:  fmt.Sprintf("%s; it holds %d messages, %s", why, s.Messages, config.Bytes(s.Bytes).Rough()),
				Why:    "nobody reads it, and it takes room",
				Remedy: &preflight.Remedy{Commands: []string{"nats stream rm " + s.Name + " -f"}, Advice: "Only when no other mesh uses this account."},
			})
		}
	}
	for _, life := range sortedKeys(e.Lives) {
		if lives[life] {
			continue
		}
		e.add(preflight.Finding{
			Check: "leftover_state", Subject: life, Status: preflight.Warning,
			Found: fmt.Sprintf("%d objects of a life that no job has", e.Lives[life]),
			Why:   "nobody reads them, and they take room",
			Remedy: &preflight.Remedy{
				Commands: []string{"nats stream purge " + bus.StateStream + " --subject '" + bus.StateLifePrefix(life) + ".>' -f"},
				Advice:   "Only when no other mesh uses this account.",
			},
		})
	}
}

// leftover says why a stream of a job is of no use; empty when it is.
func leftover(heads map[string]job.Head, name, attempt string) string {
	h, known := heads[name]
	switch {
	case !known:
		return "there is no job " + name
	case h.Phase == job.Deleted:
		return "job " + name + " is deleted"
	}
	f, err := fence.ParseToken(attempt)
	if err != nil {
		return "" // of no attempt: dead letters stay with their job
	}
	if f < h.Fence {
		return fmt.Sprintf("attempt %s of job %s is over, attempt %s has taken its place", f, name, h.Fence)
	}
	return ""
}
