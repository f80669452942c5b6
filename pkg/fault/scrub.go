package fault

import (
	"regexp"
	"strings"
)

// userinfo is everything between :// and the last @ of a word; a password may hold slashes and at signs. A list of URLs
// loses all hosts but the last, which is the price of never showing half a password.
var (
	userinfo = regexp.MustCompile(`://[^\s"'<>]*@`)
	keyword  = regexp.MustCompile(`(?i)\b((?:ssl)?password|passwd|pwd|secret|token)(\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s&"',;]+)`)
)

// Scrub hides user and password of URLs and the values of password keywords in a text. It is the second line of defence:
// [New] and the logger apply it to text that may come from foreign errors. It does not allow anybody to pass secrets (F4).
func Scrub(s string) string {
	if strings.Contains(s, "://") {
		s = userinfo.ReplaceAllString(s, "://***@")
	}
	if strings.ContainsAny(s, "=:") {
		s = keyword.ReplaceAllString(s, "$1$2***")
	}
	return s
}
