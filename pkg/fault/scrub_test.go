package fault

import (
	"errors"
	"strings"
	"testing"
)

func TestScrub(t *testing.T) {
	for text, want := range map[string]string{
		"dial nats://u:pw@h:4222: refused":            "dial nats://***@h:4222: refused",
		`parse "postgres://u:p/w@h/d": bad`:           `parse "postgres://***@h/d": bad`,
		"postgres://u:p@w@h/d?x=1":                    "postgres://***@h/d?x=1",
		"nats://u:a@h1,nats://u:b@h2":                 "nats://***@h2",
		"host=h user=u password=pw dbname=d":          "host=h user=u password=*** dbname=d",
		"host=h password='p w' dbname=d":              "host=h password=*** dbname=d",
		"postgres://h/d?password=pw&sslmode=off":      "postgres://h/d?password=***&sslmode=off",
		"https://weir.dev/docs":                       "https://weir.dev/docs",
		"wrong password for user u":                   "wrong password for user u",
		"mail a@b at nats://h:4222":                   "mail a@b at nats://h:4222",
		`password authentication failed for user "u"`: `password authentication failed for user "u"`,
	} {
		if got := Scrub(text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// F4: whatever a caller passes on from a foreign error, the forms do not show credentials of URLs.
func TestNewScrubs(t *testing.T) {
	const url = "nats://u:canary-5f1d@h:4222"
	e := New(BusUnreachable, url, "dial "+url, "url", url)
	for _, form := range []string{e.Error(), e.Text(), Of(errors.New("dial " + url)).Text()} {
		if strings.Contains(form, "canary") || !strings.Contains(form, "h:4222") {
			t.Errorf("got %s", form)
		}
	}
}

func TestRemedyNamesThePlace(t *testing.T) {
	if e := New(PGWrongPassword, "sources.db", ""); !strings.Contains(e.Remedy, "password in sources.db.url") {
		t.Errorf("got %s", e.Remedy)
	}
}
