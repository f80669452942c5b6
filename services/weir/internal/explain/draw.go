package explain

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// Mermaid is the plan as a flowchart for pages that draw it, such as a repository's.
func (e *Explanation) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, v := range e.Vertices {
		if v.Role == outside {
			fmt.Fprintf(&b, "  v%d[(\"%s\")]\n", i, v.ID)
			continue
		}
		fmt.Fprintf(&b, "  v%d[\"%s<br/>%s x%d<br/>%s\"]\n", i, v.ID, v.Role, v.Parallelism, v.Service)
	}
	for _, h := range e.Hops {
		arrow := "-->"
		if h.Back {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  v%d %s|\"%s<br/>%s\"| v%d\n", e.index(h.From), arrow, h.Carries, h.Promise, e.index(h.To))
	}
	return b.String()
}

func (e *Explanation) index(id string) int {
	return slices.IndexFunc(e.Vertices, func(v Vertex) bool { return v.ID == id })
}

// Measures of the drawing, in its own units.
const (
	boxWidth, boxHeight = 204, 64
	gapAcross, gapDown  = 150, 36
	margin              = 24
)

// place is the upper left corner of a vertex.
type place struct{ x, y int }

// layout puts sources' systems, enumerators with readers, writers, committers and sinks' systems into columns, in that order
// from left to right. Enumerators stand above their readers.
func (e *Explanation) layout() (at []place, width, height int) {
	var rows [5]int
	for i, v := range e.Vertices {
		column := e.column(i)
		at = append(at, place{margin + column*(boxWidth+gapAcross), margin + rows[column]*(boxHeight+gapDown)})
		rows[column]++
		// What a source takes in one column it takes in the others, so that its row of boxes stays in one line.
		if v.Role == "reader" {
			rows[0] = max(rows[0], rows[1])
		}
	}
	last := slices.Max(rows[:])
	return at, 2*margin + 5*boxWidth + 4*gapAcross, 2*margin + last*boxHeight + (last-1)*gapDown + boxHeight
}

func (e *Explanation) column(i int) int {
	switch e.Vertices[i].Role {
	case "enumerator", "reader":
		return 1
	case "writer":
		return 2
	case "committer":
		return 3
	}
	if slices.ContainsFunc(e.Hops, func(h Hop) bool { return h.From == e.Vertices[i].ID }) {
		return 0
	}
	return 4
}

// SVG is the plan as a drawing that stands alone: no script, no font and no picture from outside, light and dark by the
// reader's own setting. Each arrow has its guarantee as a title, which screen readers say.
func (e *Explanation) SVG() string {
	at, width, height := e.layout()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>Plan of job %s, %s</title>\n", escape(e.Job), e.Guarantee)
	b.WriteString(style)
	for _, h := range e.Hops {
		e.arrow(&b, at, h)
	}
	for i, v := range e.Vertices {
		box(&b, at[i], v)
	}
	w := e.Weakest
	fmt.Fprintf(&b, "<text class=\"note\" x=\"%d\" y=\"%d\">weakest link: %s to %s, %s: %s</text>\n</svg>\n",
		margin, height-margin, escape(w.From), escape(w.To), w.Promise, escape(w.Why))
	return b.String()
}

const style = `<style>
rect { fill: #f4f6f8; stroke: #57606a; rx: 8px }
rect.outside { fill: #fff; stroke-dasharray: 5 4 }
path { fill: none; stroke: #57606a; stroke-width: 1.5 }
path.back { stroke-dasharray: 4 4 }
path.weakest { stroke: #9a4b00; stroke-width: 3 }
text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
text.id { font-weight: 600 }
text.note { text-anchor: start }
text.hop { font-size: 11px; paint-order: stroke; stroke: #fff; stroke-width: 4px }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117 }
rect { fill: #161b22; stroke: #8b949e }
rect.outside { fill: #0d1117 }
path { stroke: #8b949e }
path.weakest { stroke: #f0a050 }
text { fill: #e6edf3 }
text.hop { stroke: #0d1117 }
}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8"/></marker></defs>
`

func box(b *strings.Builder, p place, v Vertex) {
	class, second := v.Role, "outside"
	if v.Role != outside {
		class, second = "stage", fmt.Sprintf("%s x%d, %s", v.Role, v.Parallelism, v.Service)
	}
	middle := p.x + boxWidth/2
	fmt.Fprintf(b, "<g><rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", class, p.x, p.y, boxWidth, boxHeight)
	fmt.Fprintf(b, "<text class=\"id\" x=\"%d\" y=\"%d\">%s</text>", middle, p.y+27, escape(v.ID))
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s</text></g>\n", middle, p.y+47, escape(second))
}

func (e *Explanation) arrow(b *strings.Builder, at []place, h Hop) {
	from, to := at[e.index(h.From)], at[e.index(h.To)]
	class := "forth"
	switch {
	case h == e.Weakest:
		class = "weakest"
	case h.Back:
		class = "back"
	}
	title := fmt.Sprintf("%s to %s: %s, %s: %s", h.From, h.To, h.Carries, h.Promise, h.Why)
	fmt.Fprintf(b, "<g><title>%s</title>", escape(title))
	if from.x == to.x { // an enumerator and its readers, one above the other
		x, y, end := from.x+boxWidth/3, from.y+boxHeight, to.y
		if from.y > to.y {
			x, y, end = from.x+2*boxWidth/3, from.y, to.y+boxHeight
		}
		fmt.Fprintf(b, "<path class=\"%s\" marker-end=\"url(#tip)\" d=\"M%d %d V%d\"/></g>\n", class, x, y, end)
		return
	}
	x1, y1, x2, y2 := from.x+boxWidth, from.y+boxHeight/2, to.x, to.y+boxHeight/2
	middle := (x1 + x2) / 2
	fmt.Fprintf(b, "<path class=\"%s\" marker-end=\"url(#tip)\" d=\"M%d %d C%d %d %d %d %d %d\"/>", class, x1, y1, middle, y1, middle, y2, x2, y2)
	fmt.Fprintf(b, "<text class=\"hop\" x=\"%d\" y=\"%d\">%s</text>", middle, (y1+y2)/2-8, escape(h.Carries))
	fmt.Fprintf(b, "<text class=\"hop\" x=\"%d\" y=\"%d\">%s</text></g>\n", middle, (y1+y2)/2+16, h.Promise)
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}
