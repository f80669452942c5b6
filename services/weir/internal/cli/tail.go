package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
)

func tailCommand(s *settings) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "tail SUBJECT|JOB/VERTEX",
		Short: "Show what passes on the bus from now on, rows as JSON lines",
		Long: "Decode what is published from now on. The argument is a NATS subject (wildcards allowed) or JOB/VERTEX for the " +
			"rows that enter a vertex. Row values are printed: that is the purpose of this command.",
		Example: "  weir tail shop/warehouse\n  weir tail 'weir.event.shop.>'",
		GroupID: "look",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobVertices,
		RunE: func(cmd *cobra.Command, args []string) error {
			subject, vertex, err := tailSubject(args[0])
			if err != nil {
				return err
			}
			conn, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer conn.Close()
			tap, err := conn.Tap(cmd.Context(), subject)
			if err != nil {
				return err
			}
			defer tap.Close()
			t := tailer{w: bufio.NewWriter(s.std.Out), vertex: vertex, limit: limit}
			return t.run(cmd.Context(), tap)
		},
	}
	c.Flags().IntVarP(&limit, "limit", "n", 0, "stop after this many lines (0: go on)")
	return c
}

// tailSubject turns JOB/VERTEX into a subject and the vertex to keep. A subtask is one token, so a pattern cannot name a
// vertex with every index: everything of the job passes, and what enters other vertices is left out.
func tailSubject(arg string) (subject string, vertex plan.VertexID, err error) {
	name, v, ok := strings.Cut(arg, "/")
	switch {
	case arg == "":
		return "", "", fault.New(fault.CLIUsage, "tail", "the subject is empty", "command", "weir tail")
	case !ok:
		return arg, "", nil
	case name == "" || v == "":
		return "", "", fault.New(fault.CLIUsage, arg, "want JOB/VERTEX", "command", "weir tail")
	}
	return "weir.data." + name + ".>", plan.VertexID(v), nil
}

// tailer prints messages as JSON lines.
type tailer struct {
	w      *bufio.Writer
	vertex plan.VertexID // keep only what enters it; empty keeps all
	limit  int           // lines to print; 0 is no limit
	lines  int
	dec    rows.Decoder
	buf    []byte
}

// run prints until the context ends, the limit is reached or the tap breaks.
func (t *tailer) run(ctx context.Context, tap *bus.Tap) error {
	for !t.full() {
		m, err := tap.Next(ctx)
		if ctx.Err() != nil {
			return t.w.Flush()
		}
		if err == nil {
			err = t.print(m)
		}
		if err := errors.Join(err, t.w.Flush()); err != nil {
			return err
		}
	}
	return nil
}

func (t *tailer) full() bool { return t.limit > 0 && t.lines >= t.limit }

// line is what is shown of a message that holds no rows.
type line struct {
	Subject string          `json:"subject"`
	Kind    envelope.Kind   `json:"kind,omitempty"`
	Fence   uint64          `json:"fence,omitempty"`
	Epoch   uint64          `json:"epoch,omitempty"`
	Seq     uint64          `json:"seq,omitempty"`
	Bytes   int             `json:"bytes"`
	Data    json.RawMessage `json:"data,omitempty"`
	Note    string          `json:"note,omitempty"`
}

func (t *tailer) print(m bus.Message) error {
	if t.vertex != "" {
		if _, _, dst, _, err := bus.ParseDataSubject(m.Subject); err != nil || dst.Vertex != t.vertex {
			return nil //nolint:nilerr // a subject that names no channel enters no vertex
		}
	}
	l := line{Subject: m.Subject, Bytes: len(m.Data)}
	env, err := envelope.Parse(m.Header, m.Data)
	switch {
	case err != nil:
		// Events and bucket values carry no envelope; anything else that does not parse is worth saying.
		if len(m.Header) > 0 {
			l.Note = err.Error()
		}
		return t.other(l, m.Data)
	case env.Kind == envelope.Rows && env.Ref == "":
		return t.rows(env)
	}
	l.Kind, l.Fence, l.Epoch, l.Seq = env.Kind, uint64(env.Fence), uint64(env.Epoch), env.Seq
	if env.Ref != "" {
		l.Note = "the payload is in the state stream: " + env.Ref
	}
	return t.other(l, m.Data)
}

func (t *tailer) rows(env envelope.Envelope) error {
	b, err := t.dec.Decode(env.Payload)
	if err != nil {
		return fmt.Errorf("decode rows of %s: %w", env.Table, err)
	}
	for i := 0; i < b.NumRows() && !t.full(); i++ {
		t.buf = append(b.AppendRowJSON(t.buf[:0], i), '\n')
		if _, err := t.w.Write(t.buf); err != nil {
			return err
		}
		t.lines++
	}
	return nil
}

func (t *tailer) other(l line, data []byte) error {
	if json.Valid(data) {
		l.Data = data
	}
	t.lines++
	enc := json.NewEncoder(t.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(l)
}
