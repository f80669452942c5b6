package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/progress"
)

const (
	// maxListeners bounds the streams of events of one instance.
	maxListeners = 128
	// stillAlive is how often a stream says something, so that a proxy keeps it open.
	stillAlive = 15 * time.Second
)

// Update is the data of the event "job" of one job's stream.
type Update struct {
	progress.Detail

	Epochs progress.EpochList `json:"epochs"`
}

// events streams: "jobs" is a [JobList], "job" an [Update], "notice" what the leader tells; "gone" ends the stream of a job
// that is no more. Each is the whole state, so that one that is missed is made good by the next.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("job")
	if name != "" {
		if _, ok := s.found(w, r); !ok {
			return
		}
	} else if _, ok := s.now(w, r); !ok {
		return
	}
	select {
	case s.listeners <- struct{}{}:
		defer func() { <-s.listeners }()
	default:
		w.Header().Set("Retry-After", "10")
		refuse(w, r, http.StatusServiceUnavailable, fault.New(fault.APIBusy, r.URL.Path, fmt.Sprintf("%d are connected", maxListeners)))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := stream{w: w, control: http.NewResponseController(w)}
	s.stream(&out, r, name)
}

func (s *server) stream(out *stream, r *http.Request, name string) {
	alive := time.NewTicker(stillAlive)
	defer alive.Stop()
	mark := s.Board.Mark()
	for {
		v, changed, err := s.Board.Now()
		if err == nil {
			if j, ok := v.Job(name); name != "" && !ok {
				out.send("gone", struct {
					Job string `json:"job"`
				}{name})
				return
			} else if name != "" {
				out.send("job", Update{bounded(j.Detail), j.Epochs})
			} else {
				out.send("jobs", listOf(&v))
			}
		}
		notices, next := s.Board.Notices(mark)
		mark = next
		for _, n := range notices {
			if name == "" || n.Job == name {
				out.send("notice", n)
			}
		}
		if !out.flush() {
			return
		}
		select {
		case <-changed:
		case <-alive.C:
			out.comment()
		case <-r.Context().Done():
			return
		case <-s.Closing:
			return
		}
	}
}

// stream writes events until the listener has gone.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    []byte
	failed  error
}

// send writes an event unless it is the last one again.
func (o *stream) send(event string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("web: an event cannot be encoded: " + err.Error())
	}
	if event != "notice" {
		if bytes.Equal(body, o.last) {
			return
		}
		o.last = body
	}
	o.write("event: %s\ndata: %s\n\n", event, body)
}

func (o *stream) comment() { o.write(": still here\n\n") }

func (o *stream) write(format string, args ...any) {
	if o.failed == nil {
		_, o.failed = fmt.Fprintf(o.w, format, args...)
	}
}

func (o *stream) flush() bool {
	if o.failed == nil {
		o.failed = o.control.Flush()
	}
	return o.failed == nil
}
