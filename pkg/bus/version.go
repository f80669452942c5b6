package bus

import "regexp"

var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`)

// semver is a version that NATS micro services accept; builds outside a release have none.
func semver(v string) string {
	if len(v) > 0 && v[0] == 'v' {
		v = v[1:]
	}
	if semantic.MatchString(v) {
		return v
	}
	return "0.0.0"
}
