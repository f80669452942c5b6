package notify

import (
	"crypto/hmac"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/fault"
)

func TestARequestIsSignedAndNamesItsEvent(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer srv.Close()
	h, err := NewHook(srv.URL+"/take?token=geheim", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Post(t.Context(), &Event{Version: EventVersion, ID: "ab12", Kind: CaughtUp, Job: "shop"}); err != nil {
		t.Fatal(err)
	}
	var e Event
	if err := json.Unmarshal(body, &e); err != nil || e.ID != "ab12" || e.Job != "shop" || e.Kind != CaughtUp {
		t.Errorf("%s, %v", body, err)
	}
	if got.Method != http.MethodPost || got.Header.Get(HeaderID) != "ab12" || got.Header.Get(HeaderKind) != "caught_up" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", got.Method, got.Header)
	}
	at, _, _ := strings.Cut(strings.TrimPrefix(got.Header.Get(HeaderSignature), "t="), ",")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)) > time.Minute {
		t.Errorf("signed at %q", at)
	}
	if want := Sign("s3cret", time.Unix(seconds, 0), body); !hmac.Equal([]byte(want), []byte(got.Header.Get(HeaderSignature))) {
		t.Errorf("signature %s, want %s", got.Header.Get(HeaderSignature), want)
	}
	if Sign("s3cret", time.Unix(1, 0), body) == Sign("other", time.Unix(1, 0), body) || Sign("a", time.Unix(1, 0), body) == Sign("a", time.Unix(2, 0), body) {
		t.Error("secret or time is not part of the signature")
	}
	// The known answer of an independent tool: printf '1.{}' | openssl dgst -sha256 -hmac k
	if s := Sign("k", time.Unix(1, 0), []byte("{}")); s != "t=1,v1=3dd49b2593d0f9a349e9e71c4bde3e2b862c2be4003fe9b4ba81332029310158" {
		t.Error(s)
	}
}

// A receiver that is away is tried again soon, one that refuses needs a person; neither error quotes the address.
func TestRefusalsHaveCodes(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for status, want := range map[int]fault.Code{
		200: "", 204: "", 301: fault.APIWebhookRefuses, 400: fault.APIWebhookRefuses, 401: fault.APIWebhookRefuses, 404: fault.APIWebhookRefuses,
		408: fault.APIWebhookAway, 429: fault.APIWebhookAway, 500: fault.APIWebhookAway, 503: fault.APIWebhookAway,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(status)
		}))
		h, err := NewHook(srv.URL+"/geheim", "")
		if err != nil {
			t.Fatal(err)
		}
		err = h.Post(t.Context(), &Event{ID: "1"})
		if fault.CodeOf(err) != want || (err != nil && strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%d: %v", status, err)
		}
		srv.Close()
		if err := h.Post(t.Context(), &Event{ID: "1"}); fault.CodeOf(err) != fault.APIWebhookAway || fault.ClassOf(err) != fault.Transient || strings.Contains(err.Error(), "geheim") {
			t.Errorf("nobody listens: %v", err)
		}
	}
	for _, address := range []string{"", "host", "ftp://geheim", "://", "https:///geheim"} {
		if _, err := NewHook(address, ""); fault.CodeOf(err) != fault.APIWebhookAddress || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
