package busdoctor

import (
	"fmt"
	"strings"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
)

// need is a subject that commands of `weir` use.
type need struct{ subject, what string }

// needs lists what the command line publishes to, as narrow as it does. Services have users with rights of their own.
func needs() []need {
	registry := "KV_" + bus.RegistryBucket
	return []need{
		{"$JS.API.STREAM.INFO." + registry, "open the registry"},
		{"$JS.API.DIRECT.GET." + registry, "list jobs"},
		{"$JS.API.DIRECT.GET." + registry + ".>", "read heads, plans and manifests"},
		{"$JS.API.CONSUMER.CREATE." + registry + ".*.>", "follow a job"},
		{"$JS.API.CONSUMER.MSG.NEXT." + registry + ".*", "follow a job"},
		{"$JS.API.CONSUMER.CREATE." + bus.EventStream + ".*.>", "read events"},
		{"$JS.API.CONSUMER.MSG.NEXT." + bus.EventStream + ".*", "read events"},
		{"$KV." + bus.RegistryBucket + ".jobs.*.intent", "ask something of a job"},
		{"$KV." + bus.RegistryBucket + ".jobs.*.spec.*", "submit a job"},
	}
}

// rights compares what the user may with what commands need.
func (e *examination) rights() {
	const check = "rights"
	u := e.Survey.User
	switch {
	case u == nil:
		e.add(preflight.Finding{
			Check: check, Status: preflight.Unknown, Found: "the server does not tell who this user is and what it may",
			Why:    "a denied request looks like a time-out",
			Remedy: &preflight.Remedy{Commands: []string{"nats account info"}, Advice: "Let the user publish to $SYS.REQ.USER.INFO."},
		})
		return
	case !u.Restricted:
		e.ok(check, "user %s may do everything in account %s", named(u.User), named(u.Account))
		return
	}
	denied := make(map[string][]string)
	var order []string
	for _, n := range needs() {
		if !u.Publish.Permits(n.subject) {
			if denied[n.what] == nil {
				order = append(order, n.what)
			}
			denied[n.what] = append(denied[n.what], n.subject)
		}
	}
	for _, what := range order {
		e.add(preflight.Finding{
			Check: check, Subject: what, Status: preflight.Error, Code: fault.BusRights,
			Found: fmt.Sprintf("user %s may not publish to %s", named(u.User), strings.Join(denied[what], ", ")),
			Why:   "commands that need it end in a time-out",
			Remedy: &preflight.Remedy{
				Advice: "Add to the user's permissions: publish.allow " + strings.Join(denied[what], ", ") + ".",
			},
		})
	}
	if len(order) == 0 {
		e.ok(check, "user %s may do what commands need; each service has a user of its own", named(u.User))
	}
}

func named(s string) string {
	if s == "" {
		return "without a name"
	}
	return s
}
