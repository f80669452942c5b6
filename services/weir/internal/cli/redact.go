package cli

import "net/url"

// redactURL shows a server's address without its credentials.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "the configured server"
	}
	return u.Redacted()
}
