package spec

import (
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
)

// check reports what holds between the parts of a job.
func (j *Job) check(d *config.Decoder, root *config.Node) {
	sources, sinks := root.Get("sources"), root.Get("sinks")
	if epoch := root.Get("epoch"); epoch != nil && j.Epoch.Timeout > 0 && j.Epoch.Timeout <= j.Epoch.Interval {
		at := epoch.Get("timeout")
		if at == nil {
			at = epoch.Get("interval")
		}
		d.Problem(at, "epoch.timeout (%s) must be longer than epoch.interval (%s)", j.Epoch.Timeout, j.Epoch.Interval)
	}
	// Names are looked up in the text, so that a source which is wrong in itself is still known to its sinks.
	names := make(map[string]string)
	var upstream []string
	declare := func(n *config.Node, kind string) {
		if n == nil {
			return
		}
		for _, e := range n.Entries {
			if other, ok := names[e.Key.Text]; ok {
				d.Problem(e.Key, "the name is already that of a %s", other)
				continue
			}
			names[e.Key.Text] = kind
			if kind != "sink" {
				upstream = append(upstream, e.Key.Text)
			}
		}
	}
	declare(sources, "source")
	declare(root.Get("transforms"), "transform")
	declare(sinks, "sink")

	read, known := make(map[string]bool), true
	if sinks != nil {
		for _, e := range sinks.Entries {
			if e.Value == nil || !checkFrom(d, e.Value.Get("from"), names, upstream, read) {
				known = false
			}
		}
	}
	if root.Get("transforms") != nil || sources == nil || !known {
		return // who reads what cannot be judged
	}
	for _, e := range sources.Entries {
		if !read[e.Key.Text] {
			d.Problem(e.Key, "no sink reads this source")
		}
	}
}

// checkFrom reports names that a sink cannot read from and notes the others. ok says that the list as such is right.
func checkFrom(d *config.Decoder, from *config.Node, names map[string]string, upstream []string, read map[string]bool) (ok bool) {
	if from == nil || from.Kind != config.List || len(from.Items) == 0 {
		return false // reported by the decoder
	}
	ok = true
	seen := make(map[string]bool)
	for _, item := range from.Items {
		if item == nil || item.Kind != config.String || item.Text == "" {
			ok = false
			continue
		}
		switch kind := names[item.Text]; {
		case seen[item.Text]:
			d.Problem(item, "the name is there twice")
		case kind == "sink":
			d.Problem(item, "%s is a sink; a sink reads from sources and transforms", config.Quote(item.Text))
		case kind == "":
			d.Report(item, fault.Problem{
				What:    "there is no source or transform " + config.Quote(item.Text),
				Allowed: upstream,
				Suggest: config.Nearest(item.Text, upstream),
			})
			ok = false
		}
		seen[item.Text], read[item.Text] = true, true
	}
	return ok
}
