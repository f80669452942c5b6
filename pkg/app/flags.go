package app

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
)

// command is what the arguments ask for.
type command struct {
	config  string            // path of the settings file
	set     map[string]string // setting path -> value, from flags
	version bool
	health  bool // health
	print   bool // config print
	env     bool // config print --env
}

// settingFlags are the flags that stand for settings.
func settingFlags() map[string]string {
	return map[string]string{
		"http": "http", "node": "node", "nats": "nats.url", "creds": "nats.creds", "log-level": "log.level", "log-format": "log.format",
	}
}

// errHelp says that the help was asked for and written.
var errHelp = errors.New("help was asked for")

func parseArgs(name string, args []string, stderr io.Writer) (command, error) {
	c := command{set: make(map[string]string)}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.config, "config", "", "read settings from `FILE` (YAML)")
	fs.BoolVar(&c.version, "version", false, "print the version and end")
	help := map[string]string{
		"http": "`ADDRESS` of /livez, /readyz, /metrics and /debug/pprof", "node": "`ID` of this process in the mesh",
		"nats": "`URL` of NATS (default $NATS_URL)", "creds": "`FILE` with NATS credentials (default $NATS_CREDS)",
		"log-level": "`LEVEL`: debug, info, warn, error", "log-format": "`FORMAT`: auto, text, json",
	}
	for flagName, path := range settingFlags() {
		fs.Func(flagName, help[flagName], func(v string) error {
			c.set[path] = v
			return nil
		})
	}
	usage := func() {
		_, _ = fmt.Fprintf(stderr, "Usage: %s [flags]\n       %s [flags] config print [--env]\n       %s [flags] health\n\nFlags:\n", name, name, name)
		fs.SetOutput(stderr)
		fs.PrintDefaults()
		_, _ = fmt.Fprintf(stderr, "\nEvery setting has a variable, such as %s; flags win over variables, variables over the file.\n",
			config.EnvName(name, "log.level"))
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage()
			return c, errHelp
		}
		return c, fault.New(fault.CLIUsage, name, err.Error(), "command", name)
	}
	switch rest := fs.Args(); {
	case len(rest) == 0:
	case slices.Equal(rest, []string{"health"}):
		c.health = true
	case slices.Equal(rest, []string{"config", "print"}):
		c.print = true
	case slices.Equal(rest, []string{"config", "print", "--env"}):
		c.print, c.env = true, true
	default:
		return c, fault.New(fault.CLIUsage, name, fmt.Sprintf("unknown command %q", strings.Join(rest, " ")), "command", name)
	}
	return c, nil
}

// environ returns the environment with the settings of flags in it, so that they are read by the same rules.
func (c command) environ(service string, environ []string) []string {
	out := slices.Clone(environ)
	for path, v := range c.set {
		name := config.EnvName(service, path)
		out = slices.DeleteFunc(out, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		out = append(out, name+"="+v)
	}
	return out
}

// renamed makes problems of settings that came from flags name the flag.
func (c command) renamed(service string, err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	for i, p := range e.Problems {
		for flagName, path := range settingFlags() {
			if _, set := c.set[path]; set && (p.Path == config.EnvName(service, path) || p.Path == path) {
				e.Problems[i].Path = "--" + flagName
			}
		}
	}
	return e
}
