package spec

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed templates/*.yaml
var templates embed.FS

// Template is a spec to begin with.
type Template struct {
	Name    string // pg-to-pg
	Summary string // one sentence
	Text    string // the file, first line the modeline
}

// Templates returns all templates, sorted by name. References in them are unset; the texts are valid as they are.
func Templates() []Template {
	files, err := templates.ReadDir("templates")
	if err != nil {
		panic(fmt.Sprintf("S1: %v", err))
	}
	out := make([]Template, 0, len(files))
	for _, f := range files {
		text, err := templates.ReadFile("templates/" + f.Name())
		if err != nil {
			panic(fmt.Sprintf("S1: %v", err))
		}
		lines := strings.SplitN(string(text), "\n", 3)
		out = append(out, Template{
			Name:    strings.TrimSuffix(f.Name(), ".yaml"),
			Summary: strings.TrimPrefix(lines[1], "# "),
			Text:    string(text),
		})
	}
	return out
}
