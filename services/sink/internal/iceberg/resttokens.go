package iceberg

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// tokens are what requests to a REST catalog are allowed by: one that was given, or those that OAuth2 gives for a credential, or
// none.
type tokens struct {
	token string
	// until is when a token has to be renewed; zero when nobody has said.
	until time.Time

	// url, id, secret and scope get a new token; secret is empty for a token that was given.
	url, id, secret, scope string
}

// newTokens reads a credential, which is a secret with or without an id before it.
func newTokens(token, credential, address, scope string) *tokens {
	t := &tokens{token: token, url: address, scope: cmp.Or(scope, "catalog")}
	var ok bool
	if t.id, t.secret, ok = strings.Cut(credential, ":"); !ok {
		t.id, t.secret = "", credential
	}
	return t
}

func (t *tokens) renewable() bool { return t.secret != "" }

// valid reports whether there is a token and nothing says that it has run out.
func (t *tokens) valid() bool {
	return t.token != "" && (t.until.IsZero() || time.Now().Before(t.until))
}

// get is the token for a request; empty when requests need none.
func (t *tokens) get(ctx context.Context, client *http.Client) (string, error) {
	if !t.renewable() || t.valid() {
		return t.token, nil
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_secret": {t.secret}, "scope": {t.scope}}
	if t.id != "" {
		form.Set("client_id", t.id)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	if err := roundTrip(client, r, &answer); err != nil {
		return "", err
	}
	t.token, t.until = answer.Token, time.Time{}
	if answer.Seconds > 0 { // renewed while it still holds, at half its life at the latest
		life := time.Duration(answer.Seconds) * time.Second
		t.until = time.Now().Add(life - min(life/2, time.Minute))
	}
	return t.token, nil
}
