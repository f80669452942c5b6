package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// narrator tells the person at the terminal what happens.
type narrator struct {
	out   io.Writer
	begin time.Time
}

// step begins a part of the story.
func (n *narrator) step(format string, args ...any) {
	fmt.Fprintf(n.out, "\n%5.1fs  %s\n", time.Since(n.begin).Seconds(), fmt.Sprintf(format, args...))
}

// line adds a detail to the present part.
func (n *narrator) line(format string, args ...any) {
	fmt.Fprintf(n.out, "        %s\n", fmt.Sprintf(format, args...))
}

// command shows a command and what it answered.
func (n *narrator) command(words []string, answer string) {
	fmt.Fprintf(n.out, "        $ weir %s\n", strings.Join(words, " "))
	for line := range strings.Lines(answer) {
		fmt.Fprintf(n.out, "          %s\n", strings.TrimRight(line, "\n"))
	}
}
