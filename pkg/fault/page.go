package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Page returns docs/errors.md, made from the table.
func Page() string {
	var b strings.Builder
	b.WriteString("# Errors\n\n")
	b.WriteString("<!-- Generated from pkg/fault by \"go generate ./fault\"; do not edit. -->\n\n")
	b.WriteString(pageIntro)

	areas := make(map[string][]Entry)
	for _, e := range Table() {
		areas[e.Code.Area()] = append(areas[e.Code.Area()], e)
	}
	names := make([]string, 0, len(areas))
	for a := range areas {
		names = append(names, a)
	}
	slices.Sort(names)
	for _, a := range names {
		fmt.Fprintf(&b, "\n## %s\n", a)
		for _, e := range areas[a] {
			fmt.Fprintf(&b, "\n### %s %s\n\n%s.\n\n", e.Code, e.Name, capital(e.Title))
			fmt.Fprintf(&b, "Class %s, exit code %d.\n\nRemedy: %s\n", e.Class, e.Exit, placeholders(e.Remedy))
		}
	}
	return b.String()
}

const pageIntro = "Every error that a person can meet has a stable code, and the same object appears in the command line, the logs, the\n" +
	"REST interface and the event streams:\n\n" +
	"| field | meaning |\n| --- | --- |\n" +
	"| `code` | `WEIR-<AREA>-<NNN>`, never reused |\n" +
	"| `name` | the same as a word, used as a reason in status and events |\n" +
	"| `class` | what Weir itself does, below |\n" +
	"| `what`, `where`, `why` | the situation; the place in the job spec, the table or the subtask; what was seen |\n" +
	"| `remedy` | what to do |\n" +
	"| `problems` | each finding with `line`, `column`, `path`, `what`, `allowed`, `didYouMean`, when one file has several |\n\n" +
	"| class | what Weir does |\n| --- | --- |\n" +
	"| transient | repeats the operation with growing pauses, and says since when |\n" +
	"| fenced | stops the older of two owners; nothing is written |\n" +
	"| poison | sets one row aside as a dead letter, or stops the job where dead letters are off |\n" +
	"| permanent | stops the job (FAILED); everything durable is kept, `weir job resume` goes on after the repair |\n" +
	"| bug | ends the attempt; the job restarts from its last durable epoch |\n\n" +
	"| exit code | meaning |\n| --- | --- |\n" +
	"| 0 | done |\n| 1 | internal error |\n| 2 | bad request or configuration |\n| 3 | environment: cannot reach something, or a right is missing |\n" +
	"| 4 | a verification failed |\n| 5 | a wait ran out of time |\n| 130, 143 | stopped by a signal: a command by the first, a service by the second |\n\n" +
	"A word in `<angle brackets>` stands for a name which the error itself fills in.\n"

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// placeholders keeps <name> from being read as an HTML tag outside of code spans.
func placeholders(s string) string {
	var b strings.Builder
	inCode := false
	for _, r := range s {
		switch {
		case r == '`':
			inCode = !inCode
			b.WriteRune(r)
		case inCode:
			b.WriteRune(r)
		case r == '<' || r == '>' || r == '*' || r == '_':
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
