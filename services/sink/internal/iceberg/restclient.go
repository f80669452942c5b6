package iceberg

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// restTimeout is how long an answer of the catalog may take.
const restTimeout = 30 * time.Second

// restClient speaks to a REST catalog. It repeats no request, except one that was not looked at because its token had run out; and
// the transport below repeats a POST only if nothing of it was sent. It is owned by one goroutine.
type restClient struct {
	http *http.Client
	// base is the address up to v1 and the prefix that the catalog has given.
	base   string
	tokens *tokens
	// transactions says that the catalog commits to several tables at once.
	transactions bool
}

// restError is an answer of the catalog that is no success.
type restError struct {
	status     int
	kind, text string
}

func (e *restError) Error() string {
	return fmt.Sprintf("the catalog answers %d %s: %s", e.status, e.kind, e.text)
}

func statusOf(err error) int {
	if e, ok := errors.AsType[*restError](err); ok {
		return e.status
	}
	return 0
}

// uncertain reports whether a request may have been done although it has failed: there is no answer, or one of a server or gateway
// that does not know.
func uncertain(err error) bool {
	return err != nil && (statusOf(err) == 0 || statusOf(err) >= http.StatusInternalServerError)
}

// dialCatalog asks the catalog at an address for its settings.
func dialCatalog(ctx context.Context, address, warehouse string, t *tokens) (*restClient, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	c := &restClient{base: strings.TrimRight(address, "/") + "/v1", tokens: t, http: &http.Client{
		Transport: transport, Timeout: restTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if t.url == "" {
		t.url = c.base + "/oauth/tokens"
	}
	query := url.Values{}
	if warehouse != "" {
		query.Set("warehouse", warehouse)
	}
	var settings struct {
		Defaults  map[string]string `json:"defaults"`
		Overrides map[string]string `json:"overrides"`
		Endpoints []string          `json:"endpoints"`
	}
	if err := c.do(ctx, http.MethodGet, "/config", query, nil, &settings); err != nil {
		c.close()
		return nil, fmt.Errorf("ask the catalog for its settings: %w", err)
	}
	if prefix := strings.Trim(cmp.Or(settings.Overrides["prefix"], settings.Defaults["prefix"]), "/"); prefix != "" {
		c.base += "/" + prefix
	}
	// A catalog that lists no endpoints has those of the specification's first version, which this is one of.
	c.transactions = len(settings.Endpoints) == 0 || slices.Contains(settings.Endpoints, "POST /v1/{prefix}/transactions/commit")
	return c, nil
}

func (c *restClient) close() { c.http.CloseIdleConnections() }

// do sends a request and reads its answer into out, unless that is nil. Without in it has no body.
func (c *restClient) do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	held := c.tokens.valid()
	err := c.send(ctx, method, path, query, body, out)
	if held && c.tokens.renewable() && statusOf(err) == http.StatusUnauthorized {
		c.tokens.token = ""
		err = c.send(ctx, method, path, query, body, out)
	}
	return err
}

func (c *restClient) send(ctx context.Context, method, path string, query url.Values, body []byte, out any) error {
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	token, err := c.tokens.get(ctx, c.http)
	if err != nil {
		return err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return roundTrip(c.http, r, out)
}

// roundTrip sends a request once.
func roundTrip(client *http.Client, r *http.Request, out any) error {
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // what counts has been read
	data, err := io.ReadAll(answer.Body)
	if answer.StatusCode >= http.StatusMultipleChoices {
		return refused(answer.StatusCode, data)
	}
	if err != nil {
		return fmt.Errorf("read the answer of the catalog: %w", err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("decode the answer of the catalog: %w", err)
	}
	return nil
}

// refused reads the model of errors that the specification has for the catalog, and the one that OAuth2 has.
func refused(status int, data []byte) error {
	e := &restError{status: status, text: http.StatusText(status)}
	var model struct {
		Error json.RawMessage `json:"error"`
		Text  string          `json:"error_description"`
	}
	if json.Unmarshal(data, &model) != nil {
		return e
	}
	var detail struct {
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	if json.Unmarshal(model.Error, &detail) == nil {
		e.kind, e.text = detail.Type, cmp.Or(detail.Message, e.text)
	} else if json.Unmarshal(model.Error, &e.kind) == nil {
		e.text = cmp.Or(model.Text, e.text)
	}
	return e
}
