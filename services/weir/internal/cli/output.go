package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"weir.dev/weir/pkg/fault"
)

// answer is the one form of everything printed with --json.
type answer struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Data       any          `json:"data,omitempty"`
	Error      *fault.Error `json:"error,omitempty"`
}

const apiVersion = "weir/v1"

// output prints an answer either as one JSON answer or as text.
type output struct {
	w    io.Writer
	json bool
}

// show prints data as JSON, or calls text with a writer that aligns tab-separated columns.
func (o output) show(kind string, data any, text func(w io.Writer)) error {
	if o.json {
		return o.encode(answer{APIVersion: apiVersion, Kind: kind, Data: data})
	}
	tw := tabwriter.NewWriter(o.w, 0, 0, 2, ' ', 0)
	text(tw)
	return tw.Flush()
}

// fail prints an error; its remedy comes last because that is what a person needs next.
func (o output) fail(err error) {
	e := fault.Of(err)
	if o.json {
		_ = o.encode(answer{APIVersion: apiVersion, Kind: "Error", Error: e}) // nothing is left to tell it to
		return
	}
	fmt.Fprintln(o.w, e.Text())
}

func (o output) encode(v answer) error {
	enc := json.NewEncoder(o.w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // commands in it are there to be copied
	return enc.Encode(v)
}

// row writes one line of tab-separated cells.
func row(w io.Writer, cells ...any) {
	parts := make([]string, len(cells))
	for i, c := range cells {
		parts[i] = fmt.Sprint(c)
	}
	fmt.Fprintln(w, strings.Join(parts, "\t"))
}
