package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"weir.dev/weir/pkg/fault"
)

// The headers of a request.
const (
	HeaderID        = "Weir-Event-Id"
	HeaderKind      = "Weir-Event-Kind"
	HeaderSignature = "Weir-Signature"
)

// patience is how long a receiver has for its answer.
const patience = 10 * time.Second

// Hook posts events to an address.
type Hook struct {
	address *url.URL
	secret  string
	client  *http.Client
}

// NewHook makes a hook. An empty secret signs nothing. The error is of the code API_WEBHOOK_ADDRESS and never quotes the
// address, which may hold a token.
func NewHook(address, secret string) (*Hook, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fault.New(fault.APIWebhookAddress, "webhook", "the address is not of the form http(s)://host/path")
	}
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Hook{address: u, secret: secret, client: client}, nil
}

// Sign is the value of [HeaderSignature]: "t=<seconds since 1970>,v1=<HMAC-SHA-256 of "<seconds>.<body>" in hex>".
func Sign(secret string, at time.Time, body []byte) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(seconds + "."))
	m.Write(body)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(m.Sum(nil))
}

// Post sends an event once. Errors are of the codes API_WEBHOOK_AWAY, which may pass by itself, and API_WEBHOOK_REFUSES.
func (h *Hook) Post(ctx context.Context, e *Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.address.String(), bytes.NewReader(body))
	if err != nil {
		return h.away("the request cannot be made")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "weir")
	r.Header.Set(HeaderID, e.ID)
	r.Header.Set(HeaderKind, string(e.Kind))
	if h.secret != "" {
		r.Header.Set(HeaderSignature, Sign(h.secret, time.Now(), body))
	}
	resp, err := h.client.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the address
		}
		return h.away(err.Error())
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return h.away("it answers " + resp.Status)
	default:
		return fault.New(fault.APIWebhookRefuses, h.where(), "it answers "+resp.Status)
	}
}

func (h *Hook) away(why string) error { return fault.New(fault.APIWebhookAway, h.where(), why) }

// where names the receiver by its host alone: path and query may hold a token.
func (h *Hook) where() string { return "webhook " + h.address.Host }
