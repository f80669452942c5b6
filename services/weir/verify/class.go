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
	// relayed puts a relay between each process and NATS, databases one before source and target, where they have a line.
	relayed, databases bool
	// letters sets bad rows of the copy aside.
	letters bool
	// unfit says why the class means nothing between these two; empty when it does.
	unfit func(pair) string
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

// lacks is why a class does not run between these two; empty when it does.
func (c class) lacks(p pair) string {
	if c.unfit == nil {
		return ""
	}
	return c.unfit(p)
}

// catalogue lists the classes in the order in which `--failure all` runs them. The first five have the names that the certificates of
// other engines made known.
func catalogue() []class {
	return slices.Concat(firstFive(), crashes(), zombies(), outages(), storage(), data())
}

// Catalogue lists the names of the failure classes.
func Catalogue() []string {
	var names []string
	for _, c := range catalogue() {
		names = append(names, c.name)
	}
	return names
}

// choose finds classes by their names, with commas between; "all" is every class that means something between the two, and the others
// are left out with their reasons. They come in the order of the catalogue, once each.
func choose(names string, p pair) (chosen []class, out []LeftOut, err error) {
	all := catalogue()
	if names == "all" {
		for _, c := range all {
			if why := c.lacks(p); why != "" {
				out = append(out, LeftOut{c.name, why})
			} else {
				chosen = append(chosen, c)
			}
		}
		return chosen, out, nil
	}
	wanted := make(map[string]bool)
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(all, func(c class) bool { return c.name == name })
		if i < 0 {
			return nil, nil, fmt.Errorf("there is no failure class %q; there are %s", name, strings.Join(Catalogue(), ", "))
		}
		if why := all[i].lacks(p); why != "" {
			return nil, nil, fmt.Errorf("%s does not run with %s: %s", name, p, why)
		}
		wanted[name] = true
	}
	return slices.DeleteFunc(all, func(c class) bool { return !wanted[c.name] }), nil, nil
}
