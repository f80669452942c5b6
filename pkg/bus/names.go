package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// Streams that exist once per mesh.
const (
	// AckStream holds what subtasks tell the coordinator, one message per subject.
	AckStream = "WEIR_ACK"
	// ReportStream holds the latest progress report of each node.
	ReportStream = "WEIR_REPORT"
	// EventStream holds what happened: state changes, recoveries, refused zombies, skipped epochs.
	EventStream = "WEIR_EVENT"
	// StateStream holds operator state, staged epochs, big manifests and claim checks.
	StateStream = "WEIR_STATE"
)

// Key-value buckets; the stream behind one is "KV_<bucket>".
const (
	// RegistryBucket holds what must be agreed on: heads, intents, specs, plans, manifests, savepoints.
	RegistryBucket = "weir_registry"
	// LeasesBucket holds time-limited ownership: the leader, the nodes, and names that one subtask at a time uses.
	LeasesBucket = "weir_leases"
	// ProgressBucket holds the latest progress record of each job's parts.
	ProgressBucket = "weir_progress"
)

// EscapeToken makes any text one subject token that is also safe in stream names, keys and file names: letters, digits,
// '-' and '_' stay, every other byte becomes '=' and two upper-case hexadecimal digits, and the empty text becomes "=".
// The names a job spec allows come out unchanged; a table "public.Bestellung für" reads "public=2EBestellung=20f=C3=BCr".
func EscapeToken(s string) string {
	if s == "" {
		return "="
	}
	clean := 0
	for clean < len(s) && plainByte(s[clean]) {
		clean++
	}
	if clean == len(s) {
		return s
	}
	const digits = "0123456789ABCDEF"
	b := make([]byte, 0, len(s)+8)
	for i := range len(s) {
		if c := s[i]; plainByte(c) {
			b = append(b, c)
		} else {
			b = append(b, '=', digits[c>>4], digits[c&15])
		}
	}
	return string(b)
}

// UnescapeToken reverses [EscapeToken]. Text that EscapeToken cannot have made is an error, so that each name has one
// spelling.
func UnescapeToken(token string) (string, error) {
	if token == "=" {
		return "", nil
	}
	b := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		if token[i] != '=' {
			b = append(b, token[i])
			continue
		}
		if i+3 > len(token) {
			return "", fmt.Errorf("unescape token %q: cut short", token)
		}
		v, err := strconv.ParseUint(token[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("unescape token %q: %w", token, err)
		}
		b = append(b, byte(v))
		i += 2
	}
	s := string(b)
	if s == "" || EscapeToken(s) != token {
		return "", fmt.Errorf("unescape token %q: not a canonical token", token)
	}
	return s, nil
}

func plainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || c == '-' || c == '_'
}

func subject(tokens ...string) string { return strings.Join(tokens, ".") }

// DataStream is the stream of one attempt's rows: "WEIR_<job>_<fence>".
func DataStream(job string, f fence.Token) string {
	return "WEIR_" + EscapeToken(job) + "_" + f.String()
}

// ParseDataStream takes the name of a data stream apart. The fence follows the last underscore, so that a job whose
// name begins with another's is not mistaken for it.
func ParseDataStream(name string) (job string, f fence.Token, ok bool) {
	rest, ok := strings.CutPrefix(name, "WEIR_")
	at := strings.LastIndexByte(rest, '_')
	if !ok || at <= 0 {
		return "", 0, false
	}
	f, err := fence.ParseToken(rest[at+1:])
	if err != nil {
		return "", 0, false
	}
	job, err = UnescapeToken(rest[:at])
	return job, f, err == nil
}

// DataSubject is the channel from src to dst: "weir.data.<job>.<fence>.<dst>.<src>". The receiver comes first, so that
// one consumer with one wildcard reads all its channels.
func DataSubject(job string, f fence.Token, dst, src plan.SubtaskID) string {
	return subject("weir.data", EscapeToken(job), f.String(), EscapeToken(dst.String()), EscapeToken(src.String()))
}

// DataFilter matches every channel into dst.
func DataFilter(job string, f fence.Token, dst plan.SubtaskID) string {
	return subject("weir.data", EscapeToken(job), f.String(), EscapeToken(dst.String()), "*")
}

// DataAll matches every channel of an attempt.
func DataAll(job string, f fence.Token) string {
	return subject("weir.data", EscapeToken(job), f.String(), ">")
}

// ParseDataSubject takes a channel's subject apart.
func ParseDataSubject(s string) (job string, f fence.Token, dst, src plan.SubtaskID, err error) {
	t := strings.Split(s, ".")
	if len(t) != 6 || t[0] != "weir" || t[1] != "data" {
		return "", 0, dst, src, fmt.Errorf("parse data subject %q: want weir.data.<job>.<fence>.<dst>.<src>", s)
	}
	if job, err = UnescapeToken(t[2]); err != nil {
		return "", 0, dst, src, fmt.Errorf("parse data subject %q: %w", s, err)
	}
	if f, err = fence.ParseToken(t[3]); err != nil {
		return "", 0, dst, src, fmt.Errorf("parse data subject %q: %w", s, err)
	}
	if dst, err = subtaskToken(t[4]); err != nil {
		return "", 0, dst, src, fmt.Errorf("parse data subject %q: %w", s, err)
	}
	if src, err = subtaskToken(t[5]); err != nil {
		return "", 0, dst, src, fmt.Errorf("parse data subject %q: %w", s, err)
	}
	return job, f, dst, src, nil
}

func subtaskToken(token string) (plan.SubtaskID, error) {
	s, err := UnescapeToken(token)
	if err != nil {
		return plan.SubtaskID{}, err
	}
	return plan.ParseSubtask(s)
}

// AckSubject is one fact of a subtask for the coordinator: "weir.ack.<job>.<fence>.<kind>.<subtask>"; kind is one of
// the envelope's fact kinds.
func AckSubject(job string, f fence.Token, kind string, subtask plan.SubtaskID) string {
	return subject("weir.ack", EscapeToken(job), f.String(), kind, EscapeToken(subtask.String()))
}

// AckFilter matches all facts of a job; "*" as job those of all jobs.
func AckFilter(job string) string {
	if job == "*" {
		return "weir.ack.>"
	}
	return subject("weir.ack", EscapeToken(job), ">")
}

// AckFilterAttempt matches all facts of one attempt.
func AckFilterAttempt(job string, f fence.Token) string {
	return subject("weir.ack", EscapeToken(job), f.String(), ">")
}

// ParseAckSubject takes the subject of a fact apart.
func ParseAckSubject(s string) (job string, f fence.Token, kind string, subtask plan.SubtaskID, err error) {
	t := strings.Split(s, ".")
	if len(t) != 6 || t[0] != "weir" || t[1] != "ack" {
		return "", 0, "", subtask, fmt.Errorf("parse fact subject %q: want weir.ack.<job>.<fence>.<kind>.<subtask>", s)
	}
	if job, err = UnescapeToken(t[2]); err != nil {
		return "", 0, "", subtask, fmt.Errorf("parse fact subject %q: %w", s, err)
	}
	if f, err = fence.ParseToken(t[3]); err != nil {
		return "", 0, "", subtask, fmt.Errorf("parse fact subject %q: %w", s, err)
	}
	if subtask, err = subtaskToken(t[5]); err != nil {
		return "", 0, "", subtask, fmt.Errorf("parse fact subject %q: %w", s, err)
	}
	return job, f, t[4], subtask, nil
}

// ReportSubject is where a node publishes its batched progress reports.
func ReportSubject(node string) string { return subject("weir.report", EscapeToken(node)) }

// EventSubject is "weir.event.<job>.<kind>".
func EventSubject(job, kind string) string {
	return subject("weir.event", EscapeToken(job), EscapeToken(kind))
}

// EventFilter matches all events of a job; "*" as job those of all jobs.
func EventFilter(job string) string {
	if job == "*" {
		return "weir.event.>"
	}
	return subject("weir.event", EscapeToken(job), ">")
}

// PingSubject is the liveness endpoint of a node.
func PingSubject(node string) string { return subject("weir.ping", EscapeToken(node)) }

// servicePrefix tells Weir's services from others of the account.
const servicePrefix = "weir-"

// ServiceName is under which a service is listed by `nats micro ls`: "weir-<service>".
func ServiceName(service string) string { return servicePrefix + EscapeToken(service) }

// EdgeStream is the ingress log of one edge source: "WEIR_EDGE_<job>_<source>".
func EdgeStream(job, source string) string {
	return "WEIR_EDGE_" + EscapeToken(job) + "_" + EscapeToken(source)
}

// EdgeSubject is one collector's part of an ingress log: "weir.edge.<job>.<source>.<collector>".
func EdgeSubject(job, source, collector string) string {
	return subject("weir.edge", EscapeToken(job), EscapeToken(source), EscapeToken(collector))
}

// EdgeFilter matches all collectors of an ingress log.
func EdgeFilter(job, source string) string {
	return subject("weir.edge", EscapeToken(job), EscapeToken(source), ">")
}

// DLQStream holds the dead letters of a job: "WEIR_DLQ_<job>".
func DLQStream(job string) string { return "WEIR_DLQ_" + EscapeToken(job) }

// DLQSubject is one dead letter: "weir.dlq.<job>.<sink>.<table>.<epoch>.<index>". A letter has one subject and a subject
// one letter, so that a commit that is repeated writes the same letter once.
func DLQSubject(job, sink, table string, e epoch.ID, index int) string {
	return subject("weir.dlq", EscapeToken(job), EscapeToken(sink), EscapeToken(table), e.String(), strconv.Itoa(index))
}

// DLQClaim is the mark of the attempt that may write a sink's letters: "weir.dlq.<job>.<sink>".
func DLQClaim(job, sink string) string {
	return subject("weir.dlq", EscapeToken(job), EscapeToken(sink))
}

// DLQFilter matches all dead letters of a job, and no claim.
func DLQFilter(job string) string { return subject("weir.dlq", EscapeToken(job), "*.*.*.*") }

// DLQEpochFilter matches the dead letters of one epoch of a sink.
func DLQEpochFilter(job, sink string, e epoch.ID) string {
	return subject("weir.dlq", EscapeToken(job), EscapeToken(sink), "*", e.String(), "*")
}

// ParseDLQSubject takes the subject of a dead letter apart.
func ParseDLQSubject(s string) (job, sink, table string, e epoch.ID, index int, err error) {
	fail := func(err error) (string, string, string, epoch.ID, int, error) {
		return "", "", "", 0, 0, fmt.Errorf("parse dead letter subject %q: %w", s, err)
	}
	t := strings.Split(s, ".")
	if len(t) != 7 || t[0] != "weir" || t[1] != "dlq" {
		return fail(errors.New("want weir.dlq.<job>.<sink>.<table>.<epoch>.<index>"))
	}
	for i, name := range []*string{&job, &sink, &table} {
		if *name, err = UnescapeToken(t[2+i]); err != nil {
			return fail(err)
		}
	}
	if e, err = epoch.ParseID(t[5]); err != nil {
		return fail(err)
	}
	if index, err = strconv.Atoi(t[6]); err != nil || index < 0 || strconv.Itoa(index) != t[6] {
		return fail(fmt.Errorf("index %q", t[6]))
	}
	return job, sink, table, e, index, nil
}

// StateSubject names one state object, the n-th that the subtask writes between two barriers:
// "weir.state.<life>.<fence>.<epoch>.<subtask>.<n>"; epoch is the last barrier passed plus one. Its parts are the
// messages "<subject>.<part>", counted from 0.
func StateSubject(life string, f fence.Token, e epoch.ID, subtask plan.SubtaskID, n int) string {
	return subject(StateEpochPrefix(life, f, e), EscapeToken(subtask.String()), strconv.Itoa(n))
}

// StatePrefix names all state objects.
const StatePrefix = "weir.state"

// StateLifePrefix, StateAttemptPrefix and StateEpochPrefix name all objects of a life, an attempt, an epoch of it, for
// listing and purging.
func StateLifePrefix(life string) string { return subject(StatePrefix, EscapeToken(life)) }

// StateAttemptPrefix: see [StateLifePrefix].
func StateAttemptPrefix(life string, f fence.Token) string {
	return subject(StateLifePrefix(life), f.String())
}

// StateEpochPrefix: see [StateLifePrefix].
func StateEpochPrefix(life string, f fence.Token, e epoch.ID) string {
	return subject(StateAttemptPrefix(life, f), e.String())
}

// ParseStateSubject takes the name of an object apart.
func ParseStateSubject(s string) (life string, f fence.Token, e epoch.ID, subtask plan.SubtaskID, n int, err error) {
	fail := func(err error) (string, fence.Token, epoch.ID, plan.SubtaskID, int, error) {
		return "", 0, 0, plan.SubtaskID{}, 0, fmt.Errorf("parse state subject %q: %w", s, err)
	}
	t := strings.Split(s, ".")
	if len(t) != 7 || t[0] != "weir" || t[1] != "state" {
		return fail(fmt.Errorf("want weir.state.<life>.<fence>.<epoch>.<subtask>.<n>"))
	}
	if life, err = UnescapeToken(t[2]); err != nil {
		return fail(err)
	}
	if f, err = fence.ParseToken(t[3]); err != nil {
		return fail(err)
	}
	if e, err = epoch.ParseID(t[4]); err != nil {
		return fail(err)
	}
	if subtask, err = subtaskToken(t[5]); err != nil {
		return fail(err)
	}
	if n, err = strconv.Atoi(t[6]); err != nil || n < 0 || strconv.Itoa(n) != t[6] {
		return fail(fmt.Errorf("object number %q", t[6]))
	}
	return life, f, e, subtask, n, nil
}
