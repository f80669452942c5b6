package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// How a class recovers.
const (
	byItself  = "by itself"
	byCommand = "by a command"
)

// class is one failure class.
type class struct {
	name string
	// trigger is when the harm is done, for people.
	trigger string
	mode    string
	// relayed puts a relay between each process and NATS, databases one before source and target.
	relayed, databases bool
	// patience is the timeout of epochs; "10s" when empty.
	patience string
	run      func(context.Context, *trial) error
}

func (c class) timeout() string {
	if c.patience == "" {
		return "10s"
	}
	return c.patience
}

// roles are those of the processes a run begins with: of each role one can be lost.
var roles = [...]string{coordinator, coordinator, reader, reader, sinks, sinks}

// catalogue lists the classes in the order in which `--failure all` runs them. The first five have the names that the certificates of
// other engines made known.
func catalogue() []class {
	return slices.Concat(firstFive(), crashes(), zombies(), outages())
}

// Catalogue lists the names of the failure classes.
func Catalogue() []string {
	var names []string
	for _, c := range catalogue() {
		names = append(names, c.name)
	}
	return names
}

// choose finds classes by their names, with commas between; "all" is every class. They come in the order of the catalogue, once each.
func choose(names string) ([]class, error) {
	all := catalogue()
	if names == "all" {
		return all, nil
	}
	wanted := make(map[string]bool)
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if !slices.ContainsFunc(all, func(c class) bool { return c.name == name }) {
			return nil, fmt.Errorf("there is no failure class %q; there are %s", name, strings.Join(Catalogue(), ", "))
		}
		wanted[name] = true
	}
	return slices.DeleteFunc(all, func(c class) bool { return !wanted[c.name] }), nil
}
