package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
)

// reading opens the object and reads of it what the function says.
func reading(read func(iceio.File) ([]byte, error)) func(iceio.WriteFileIO) ([]byte, error) {
	return func(w iceio.WriteFileIO) ([]byte, error) {
		f, err := w.Open(object)
		if err != nil {
			return nil, err
		}
		data, err := read(f)
		return data, errors.Join(err, f.Close())
	}
}

func all(f iceio.File) ([]byte, error) { return io.ReadAll(f) }

// An answer that breaks, or stands still, is continued by another one wherever that is, and the caller sees the object.
func TestTornAnswers(t *testing.T) {
	t.Parallel()
	data := content()
	for _, c := range []struct {
		name       string
		read       func(iceio.WriteFileIO) ([]byte, error)
		asked      []string // up to the answer that breaks
		first, end int      // of what is read
	}{
		{"a file from its beginning", reading(all), []string{""}, 0, size},
		{"all of a file", func(w iceio.WriteFileIO) ([]byte, error) { return w.(iceio.ReadFileIO).ReadFile(object) }, []string{""}, 0, size},
		{"a file from the middle", reading(func(f iceio.File) ([]byte, error) {
			if _, err := f.Seek(1000, io.SeekStart); err != nil {
				return nil, err
			}
			return all(f)
		}), []string{"", "1000-"}, 1000, size},
		{"a part of a file", reading(func(f iceio.File) ([]byte, error) {
			p := make([]byte, 100_000)
			_, err := f.ReadAt(p, 1000)
			return p, err
		}), []string{"", "1000-100999"}, 1000, 101_000},
	} {
		for _, after := range []int{0, 1, 4096, (c.end - c.first) / 2, c.end - c.first - 1} {
			t.Run(fmt.Sprintf("%s/%d", c.name, after), func(t *testing.T) {
				t.Parallel()
				// One of them stands still; that takes its time.
				h := harm{after: after, silent: after == 4096}
				s := &server{data: data, harms: map[int]harm{len(c.asked) - 1: h}}
				got, err := c.read(s.start(t, t.Context(), slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, data[c.first:c.end]) {
					t.Errorf("%d bytes, and not those of the object", len(got))
				}
				want := append(slices.Clone(c.asked), fmt.Sprintf("%d-%d", c.first+after, c.end-1))
				if !slices.Equal(s.asked(), want) {
					t.Errorf("asked for %q, want %q", s.asked(), want)
				}
				if match := s.requests[len(want)-1].Header.Get("If-Match"); match != `"one"` {
					t.Errorf("the rest is asked of the object %q", match)
				}
			})
		}
	}
}

// Answers that break one after the other are continued from the last of them; a read does not ask for ever.
func TestTornAgain(t *testing.T) {
	t.Parallel()
	data := content()
	s := &server{data: data, harms: map[int]harm{0: {after: 10}, 1: {after: 0}, 2: {after: 1000}, 3: {after: 100_000}}}
	got, err := reading(all)(s.start(t, t.Context(), slog.DiscardHandler))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if want := []string{"", "10-299999", "10-299999", "1010-299999", "101010-299999"}; !slices.Equal(s.asked(), want) {
		t.Errorf("asked for %q, want %q", s.asked(), want)
	}
	s = &server{data: data, harms: map[int]harm{0: {after: 10}, 1: {}, 2: {}, 3: {}, 4: {}, 5: {}}}
	got, err = reading(all)(s.start(t, t.Context(), slog.DiscardHandler))
	if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.Equal(got, data[:10]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if len(s.asked()) != 6 {
		t.Errorf("asked %d times", len(s.asked()))
	}
}

// What another answer cannot continue is an error: bytes of two objects are never put together.
func TestRestOfAnother(t *testing.T) {
	t.Parallel()
	data := content()
	for _, c := range []struct {
		name string
		s    *server
		says string
	}{
		{"the object has changed", &server{headers: []http.Header{{"Etag": {`"one"`}}, {"Etag": {`"two"`}}}}, "PreconditionFailed"},
		{"the store knows no ranges", &server{deaf: true}, "the store was asked for bytes=10-299999"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.s.data, c.s.harms = data, map[int]harm{0: {after: 10}}
			got, err := reading(all)(c.s.start(t, t.Context(), slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), c.says) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the error is %v", err)
			}
			if len(got) != 10 || len(c.s.asked()) != 2 {
				t.Errorf("%d bytes by %d requests", len(got), len(c.s.asked()))
			}
		})
	}
}

// An answer that came whole, and wrong, is an error as it is.
func TestWrongChecksum(t *testing.T) {
	t.Parallel()
	s := &server{data: content(), headers: []http.Header{{"X-Amz-Checksum-Crc32": {"AAAAAA=="}}}}
	if _, err := reading(all)(s.start(t, t.Context(), slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "checksum did not match") {
		t.Errorf("the error is %v", err)
	}
	if len(s.asked()) != 1 {
		t.Errorf("asked %d times", len(s.asked()))
	}
}

// A listing is asked for again as a whole.
func TestTornListing(t *testing.T) {
	t.Parallel()
	s := &server{harms: map[int]harm{0: {after: 0}, 1: {after: 40}}}
	var found []string
	err := s.start(t, t.Context(), slog.DiscardHandler).(iceio.ListableIO).WalkDir("s3://lake/", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil || !slices.Equal(found, []string{object}) {
		t.Errorf("found %q, %v", found, err)
	}
}

// What changes something is not asked for again: whether it is done is for the caller to find out.
func TestTornWrite(t *testing.T) {
	t.Parallel()
	s := &server{harms: map[int]harm{0: {after: 40}}}
	if err := s.start(t, t.Context(), slog.DiscardHandler).WriteFile(object, make([]byte, 20<<20)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the error is %v", err)
	}
	if len(s.asked()) != 1 {
		t.Errorf("asked %d times", len(s.asked()))
	}
}

// cancels ends a context when something is logged.
type cancels struct {
	slog.Handler
	end   context.CancelFunc
	times atomic.Int64
}

func (c *cancels) Enabled(context.Context, slog.Level) bool { return true }

func (c *cancels) Handle(context.Context, slog.Record) error {
	c.times.Add(1)
	c.end()
	return nil
}

// Nobody who has been told to end waits for a store.
func TestReadEnds(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	c := &cancels{end: end}
	s := &server{data: content(), harms: map[int]harm{0: {after: 10}}}
	if _, err := reading(all)(s.start(t, ctx, c)); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if len(s.asked()) != 1 || c.times.Load() != 1 {
		t.Errorf("asked %d times, and %d warnings", len(s.asked()), c.times.Load())
	}
}
