package embed

import (
	"context"
	"fmt"
	"log/slog"
)

// logger hands the server's lines to slog one level down: what is news to a NATS operator is detail here.
type logger struct {
	l *slog.Logger
}

func (g *logger) line(level slog.Level, format string, v []any) {
	g.l.Log(context.Background(), level, "nats server", slog.String("line", fmt.Sprintf(format, v...)))
}

func (g *logger) Noticef(format string, v ...any) { g.line(slog.LevelDebug, format, v) }
func (g *logger) Warnf(format string, v ...any)   { g.line(slog.LevelWarn, format, v) }
func (g *logger) Fatalf(format string, v ...any)  { g.line(slog.LevelError, format, v) }
func (g *logger) Errorf(format string, v ...any)  { g.line(slog.LevelError, format, v) }
func (g *logger) Debugf(string, ...any)           {}
func (g *logger) Tracef(string, ...any)           {}
