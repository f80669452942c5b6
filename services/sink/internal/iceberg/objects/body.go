package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// span is a stretch of an object's bytes: from the first to before the end.
type span struct{ first, end int64 }

// spanOf says what part of the object an answer has; it is not known of one that does not say its length.
func spanOf(o *s3.GetObjectOutput) (s span, known bool) {
	if o.ContentRange == nil {
		return span{0, aws.ToInt64(o.ContentLength)}, o.ContentLength != nil
	}
	var last int64
	if _, err := fmt.Sscanf(*o.ContentRange, "bytes %d-%d/", &s.first, &last); err != nil {
		return span{}, false
	}
	s.end = last + 1
	return s, true
}

// request is how a range is asked for.
func (s span) request() string { return fmt.Sprintf("bytes=%d-%d", s.first, s.end-1) }

// body is what a caller reads of an object: one answer, and after each tear another one that goes on where it broke.
type body struct {
	part io.ReadCloser
	left span
	// wait says whether to ask again after an error, and pauses before it.
	wait func(cause error) error
	// rest asks for what is left.
	rest func(left span) (io.ReadCloser, error)
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	for {
		n, err := b.part.Read(p)
		b.left.first += int64(n)
		if err == io.EOF && b.left.first < b.left.end {
			err = io.ErrUnexpectedEOF
		}
		switch {
		case err == nil, err == io.EOF, b.left.first == b.left.end:
			return n, err // with an error at the end all has come, and is wrong
		case n > 0:
			return n, nil // the error comes again
		}
		if err := b.resume(err); err != nil {
			return 0, err
		}
	}
}

func (b *body) resume(cause error) error {
	if err := b.wait(cause); err != nil {
		return err
	}
	more, err := b.rest(b.left)
	if err != nil {
		return fmt.Errorf("ask again after %w: %w", cause, err)
	}
	_ = b.part.Close() // it is broken
	b.part = more
	return nil
}

// Close implements [io.Closer].
func (b *body) Close() error { return b.part.Close() }

// errSilent ends an answer that stands still.
var errSilent = errors.New("the store has stopped in the middle of its answer")

// heard is the body of one answer; the store must go on with it while somebody reads.
type heard struct {
	io.ReadCloser
	silence time.Duration
	timer   *time.Timer
	end     context.CancelCauseFunc
}

// newHeard has end end the request when the store is silent, and when the body is closed.
func newHeard(body io.ReadCloser, silence time.Duration, end context.CancelCauseFunc) *heard {
	h := &heard{ReadCloser: body, silence: silence, end: end}
	h.timer = time.AfterFunc(silence, func() { end(errSilent) })
	h.timer.Stop()
	return h
}

// Read implements [io.Reader].
func (h *heard) Read(p []byte) (int, error) {
	h.timer.Reset(h.silence)
	defer h.timer.Stop()
	return h.ReadCloser.Read(p)
}

// Close implements [io.Closer].
func (h *heard) Close() error {
	defer h.end(nil)
	return h.ReadCloser.Close()
}
