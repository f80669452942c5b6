package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"weir.dev/weir/pkg/telemetry"
)

// rereader asks again when the answer to a read is torn. The SDK repeats requests whose answer does not begin, or begins with an
// error that passes; what breaks after that it hands to the caller.
//
// It is the last of the steps that see an operation's parameters and not yet its request: every repetition is located, signed, and
// repeated by the SDK, as a request of its own.
type rereader struct {
	log *slog.Logger
	// silence is how long an answer may stand still.
	silence time.Duration
	// pause is the length of a read's first one before it is tried again; the next are longer.
	pause time.Duration
}

// install adds it to the steps of one operation.
func (r rereader) install(stack *middleware.Stack) error {
	return stack.Initialize.Add(r, middleware.After)
}

// ID implements [middleware.InitializeMiddleware].
func (rereader) ID() string { return "WeirReread" }

// HandleInitialize implements [middleware.InitializeMiddleware].
func (r rereader) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	switch params := in.Parameters.(type) {
	case *s3.GetObjectInput:
		g := get{rereader: r, next: next, retries: r.retries(params.Key)}
		return g.begin(ctx, params)
	case *s3.ListObjectsV2Input:
		return r.retries(params.Prefix).parsed(ctx, in, next)
	}
	return next.HandleInitialize(ctx, in)
}

// retries are those of one read.
type retries struct {
	log   *slog.Logger
	what  string
	left  int
	pause time.Duration
}

func (r rereader) retries(what *string) *retries {
	return &retries{log: r.log, what: aws.ToString(what), left: 5, pause: r.pause}
}

// wait pauses before a read is tried again. Its error says that it is not: the cause, or that the context has ended.
func (r *retries) wait(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.left == 0 {
		return cause
	}
	r.log.WarnContext(ctx, "answer of the object store is torn", "object", r.what, "retries_left", r.left, telemetry.KeyError, cause)
	d := r.pause/2 + rand.N(r.pause)
	r.left, r.pause = r.left-1, 2*r.pause
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// parsed does an operation whose answer the SDK reads.
func (r *retries) parsed(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	for {
		out, meta, err := next.HandleInitialize(ctx, in)
		_, begun := errors.AsType[*smithy.DeserializationError](err)
		if !begun || !errors.Is(err, io.ErrUnexpectedEOF) {
			return out, meta, err
		}
		if err := r.wait(ctx, err); err != nil {
			return out, meta, err
		}
	}
}

// get is the read of an object, or of a range of one.
type get struct {
	rereader
	next    middleware.InitializeHandler
	retries *retries
}

// begin asks for all of it. What breaks later is mended while the caller reads, so long as ctx lives.
func (g get) begin(ctx context.Context, params *s3.GetObjectInput) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, meta, err := g.ask(ctx, params)
	if err != nil {
		return out, meta, err
	}
	first := out.Result.(*s3.GetObjectOutput)
	s, known := spanOf(first)
	if !known { // how much is missing cannot be known either
		return out, meta, nil
	}
	first.Body = &body{
		part: first.Body, left: s,
		wait: func(cause error) error { return g.retries.wait(ctx, cause) },
		rest: func(left span) (io.ReadCloser, error) { return g.rest(ctx, *params, first.ETag, left) },
	}
	return out, meta, nil
}

// rest asks for what is left of an object. The checksum that the SDK compares is of whole ones: this has none.
func (g get) rest(ctx context.Context, params s3.GetObjectInput, etag *string, left span) (io.ReadCloser, error) {
	params.Range, params.IfMatch = aws.String(left.request()), etag
	out, _, err := g.ask(ctx, &params)
	if err != nil {
		return nil, err
	}
	answer := out.Result.(*s3.GetObjectOutput)
	if s, known := spanOf(answer); !known || s != left {
		_ = answer.Body.Close() // nobody reads it
		return nil, fmt.Errorf("the store was asked for %s and answers %q", left.request(), aws.ToString(answer.ContentRange))
	}
	return answer.Body, nil
}

// ask does one request. Its body ends when the store is silent.
func (g get) ask(ctx context.Context, params *s3.GetObjectInput) (middleware.InitializeOutput, middleware.Metadata, error) {
	ctx, end := context.WithCancelCause(ctx)
	out, meta, err := g.retries.parsed(ctx, middleware.InitializeInput{Parameters: params}, g.next)
	if err != nil {
		end(nil)
		return out, meta, err
	}
	answer := out.Result.(*s3.GetObjectOutput)
	answer.Body = newHeard(answer.Body, g.silence, end)
	return out, meta, nil
}
