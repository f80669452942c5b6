package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/internal/control"
)

func topCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "top [NAME]",
		Short: "A live view of jobs in the terminal",
		Long: "Arrows choose a job, q ends. It draws in 80 columns, over ssh too, and without colours when NO_COLOR is set. " +
			"Where there is no terminal use weir status --watch.",
		Example: "  weir top\n  weir top shop",
		GroupID: "look",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			out, ok := s.std.Out.(*os.File)
			if !ok || !screen(out) || s.json {
				return fault.New(fault.CLIUsage, "weir top", "there is no terminal to draw in; `weir status --watch` needs none", "command", "weir top")
			}
			_, plain := os.LookupEnv("NO_COLOR")
			m := topModel{screen: topScreen{plain: plain, width: 80, height: 24}, look: func() tea.Msg { return lookAll(ctx, c, args) }}
			_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithOutput(out)).Run()
			if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) {
				return context.Cause(ctx)
			}
			return err
		}),
	}
}

// screen reports whether a file is a terminal, colours or not.
func screen(f *os.File) bool {
	i, err := f.Stat()
	return err == nil && i.Mode()&os.ModeCharDevice != 0
}

// looked is what a look at the jobs has found.
type looked struct {
	at   time.Time
	jobs []control.Status
	err  error
}

func lookAll(ctx context.Context, c session, names []string) looked {
	l := looked{at: time.Now()}
	if len(names) == 0 {
		heads, err := c.Jobs(ctx)
		if err != nil {
			l.err = err
			return l
		}
		for _, h := range heads {
			names = append(names, h.Job)
		}
	}
	for _, n := range names {
		st, err := c.Status(ctx, n)
		if err != nil && fault.CodeOf(err) != fault.CLINoJob {
			l.err = err
			return l
		}
		if err == nil {
			l.jobs = append(l.jobs, st)
		}
	}
	return l
}

// topModel is the program of weir top: it looks once a second, and draws what was found.
type topModel struct {
	screen topScreen
	look   func() tea.Msg
}

// Init looks at once.
func (m topModel) Init() tea.Cmd { return m.look }

// again asks for the next look.
type again struct{}

// Update takes keys, sizes and looks.
func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.width, m.screen.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "esc":
			return m, tea.Quit
		case "ctrl+c":
			return m, tea.Interrupt
		case "up", "k":
			m.screen.choose(-1)
		case "down", "j", "tab":
			m.screen.choose(1)
		}
	case looked:
		m.screen.take(msg)
		return m, tea.Tick(time.Second, func(time.Time) tea.Msg { return again{} })
	case again:
		return m, m.look
	}
	return m, nil
}

// View draws the screen.
func (m topModel) View() tea.View {
	v := tea.NewView(m.screen.text())
	v.AltScreen = true
	return v
}

// choose moves to another job.
func (t *topScreen) choose(by int) {
	if n := len(t.now.jobs); n > 0 {
		t.chosen = t.now.jobs[(max(0, t.index())+by+n)%n].Job
	}
}

func (t *topScreen) index() int {
	return slices.IndexFunc(t.now.jobs, func(s control.Status) bool { return s.Job == t.chosen })
}
