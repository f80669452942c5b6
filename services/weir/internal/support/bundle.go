package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/services/weir/internal/control"
)

// Request says what goes into a bundle.
type Request struct {
	Conn    *bus.Conn
	Control *control.Client
	// Job is the one that matters; empty means all.
	Job string
	// Epochs and Events bound what is taken of each job: the newest.
	Epochs, Events int
	// Versions are those of the program that writes the bundle.
	Versions any
	// Environment names what is set around it, without values.
	Environment []string
	// Findings looks at the NATS server.
	Findings func(ctx context.Context) ([]preflight.Finding, error)
	// Status is what `weir status` answers.
	Status func(ctx context.Context, name string) (any, error)
}

// File is one file of a bundle.
type File struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// Missing is what a bundle lacks, and why.
type Missing struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Index is what a bundle holds; it is its last file.
type Index struct {
	Job     string    `json:"job,omitempty"`
	At      time.Time `json:"at"`
	Files   []File    `json:"files"`
	Missing []Missing `json:"missing"`
}

// writer adds files to the archive. The first failure to write ends it.
type writer struct {
	tar   *tar.Writer
	index Index
	err   error
}

// Write writes a bundle. An error means that it is not whole.
func Write(ctx context.Context, w io.Writer, r Request) (Index, error) {
	z := gzip.NewWriter(w)
	b := &writer{tar: tar.NewWriter(z), index: Index{Job: r.Job, At: time.Now().UTC(), Files: []File{}, Missing: []Missing{}}}
	b.json("versions.json", r.Versions, nil)
	b.json("environment.json", r.Environment, nil)
	heads, err := r.Control.Jobs(ctx)
	if err != nil {
		b.missing("jobs", err)
	}
	for _, h := range heads {
		if (r.Job == "" || r.Job == h.Job) && ctx.Err() == nil {
			b.job(ctx, r, h)
		}
	}
	b.events(ctx, r, "events.jsonl", "")
	b.bus(ctx, r)
	b.processes(ctx, r)
	if ctx.Err() != nil {
		return b.index, fmt.Errorf("write the bundle: %w", context.Cause(ctx))
	}
	b.json("index.json", &b.index, nil)
	for _, end := range []func() error{b.tar.Close, z.Close} {
		b.err = errors.Join(b.err, end())
	}
	if b.err != nil {
		return b.index, fmt.Errorf("write the bundle: %w", b.err)
	}
	return b.index, nil
}

// missing notes what could not be read.
func (b *writer) missing(name string, err error) {
	b.index.Missing = append(b.index.Missing, Missing{Name: name, Why: fault.Scrub(err.Error())})
}

// raw adds a file as it is.
func (b *writer) raw(name string, content []byte) {
	if b.err != nil {
		return
	}
	h := &tar.Header{Name: "weir-support/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: b.index.At}
	if b.err = b.tar.WriteHeader(h); b.err != nil {
		return
	}
	if _, b.err = b.tar.Write(content); b.err == nil {
		b.index.Files = append(b.index.Files, File{Name: name, Bytes: len(content)})
	}
}

// text adds a file of text that may quote foreign errors.
func (b *writer) text(name string, content []byte) { b.raw(name, []byte(fault.Scrub(string(content)))) }

// json adds a value, or notes why there is none.
func (b *writer) json(name string, v any, err error) {
	var out bytes.Buffer
	if err == nil {
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(v)
	}
	if err != nil {
		b.missing(name, err)
		return
	}
	b.text(name, out.Bytes())
}

// events adds the newest events of a job, or of all jobs, one per line.
func (b *writer) events(ctx context.Context, r Request, name, of string) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := r.Control.Events(ctx, control.EventQuery{Job: of, Newest: r.Events}, func(e control.Event) error {
		if e.Err != nil {
			return enc.Encode(map[string]string{"unreadable": e.Subject})
		}
		return enc.Encode(e.Notice)
	})
	if err != nil {
		b.missing(name, err)
		return
	}
	b.text(name, out.Bytes())
}

// job adds all that is known of one job.
func (b *writer) job(ctx context.Context, r Request, h job.Head) {
	at := "jobs/" + bus.EscapeToken(h.Job) + "/"
	b.json(at+"head.json", h, nil)
	intent, err := r.Control.Intent(ctx, h.Job)
	b.json(at+"intent.json", intent, err)
	if j, err := r.Control.Spec(ctx, &h); err != nil {
		b.missing(at+"spec.yaml", err)
	} else {
		b.text(at+"spec.yaml", []byte(j.Redacted()))
	}
	if h.Plan != nil {
		d, err := r.Control.Deployment(ctx, *h.Plan)
		if err == nil {
			d = withoutSpec(d)
		}
		b.json(at+"plan.json", d, err)
	}
	links, err := r.Control.History(ctx, &h)
	if err != nil {
		b.missing(at+"epochs", err)
	}
	for _, l := range links[max(0, len(links)-r.Epochs):] {
		b.json(fmt.Sprintf("%sepochs/%s.json", at, l.Ref.Epoch), bare(l), nil)
	}
	st, err := r.Status(ctx, h.Job)
	b.json(at+"status.json", st, err)
	b.events(ctx, r, at+"events.jsonl", h.Job)
}

// bus adds what the NATS server says.
func (b *writer) bus(ctx context.Context, r Request) {
	survey, err := r.Conn.Survey(ctx)
	b.json("bus/survey.json", survey, err)
	if err == nil {
		var all []bus.ConsumerSeen
		for i := range survey.Streams {
			if s := &survey.Streams[i]; s.Ours() {
				found, err := r.Conn.Consumers(ctx, s.Name)
				if err != nil {
					b.missing("bus/consumers.json of "+s.Name, err)
				}
				all = append(all, found...)
			}
		}
		b.json("bus/consumers.json", all, nil)
	}
	found, err := r.Findings(ctx)
	b.json("bus/doctor.json", found, err)
	nodes, err := r.Control.Nodes(ctx)
	b.json("bus/leases.json", nodes, err)
}
