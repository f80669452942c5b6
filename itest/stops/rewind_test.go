package stops

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
)

// Rows that wait for a commit are lost with what the bus stored: the commit stops and says what is missing, and the command that it
// advises takes the job back to its newest committed epoch. Nothing is lost and nothing comes twice, in a changelog neither.
func TestRewind(t *testing.T) {
	s := begin(t, fmt.Sprintf(copySpec, 1, 1))
	s.CaughtUp(t, name)
	conn := s.connect(t.Context(), t, "target")
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE copy.t, log.t IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	// Enough to be staged in an object: little travels in the manifest itself.
	s.exec(t, "INSERT INTO t SELECT i, hashint8(i) FROM generate_series(100000, 160000) i")
	r := s.Records(t)
	harness.Await(t, 60*time.Second, "an epoch with objects that waits for its commit", func(ctx context.Context) error {
		h, err := r.Now(ctx, name)
		if err != nil {
			return err
		}
		links, err := r.Chain(ctx, name, h.Durable.Ref, h.Committed)
		if err != nil {
			return err
		}
		for _, l := range links {
			for _, k := range l.Manifest.Sinks {
				for _, p := range k.Staged {
					if l.Ref.Epoch > h.Committed && len(p.Objects) > 0 {
						return nil
					}
				}
			}
		}
		return errors.New("none yet")
	})
	s.Must(t, "job", "suspend", name)
	h, err := r.Now(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	links, err := r.Chain(t.Context(), name, h.Durable.Ref, h.Committed)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, l := range links {
		for _, k := range l.Manifest.Sinks {
			for _, p := range k.Staged {
				for _, o := range p.Objects {
					if l.Ref.Epoch <= h.Committed {
						continue
					}
					if _, err := r.Bus.PurgeState(t.Context(), o.Subject); err != nil {
						t.Fatal(err)
					}
					lost++
				}
			}
		}
	}
	if lost == 0 {
		t.Fatalf("nothing is staged behind epoch %d", h.Committed)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	s.Must(t, "job", "resume", name)
	harness.Await(t, 60*time.Second, "the job to stop", func(context.Context) error {
		if st := s.Status(t, name); st.Phase != "FAILED" {
			return fmt.Errorf("the job is %s", st.Phase)
		}
		return nil
	})
	reason := s.Status(t, name).Reason
	if reason.Code != "WEIR-SINK-018" || !strings.Contains(reason.Remedy, "`weir job rewind "+name+"`") {
		t.Fatalf("stopped by %+v", reason)
	}
	s.exec(t, "UPDATE t SET n = n + 1 WHERE id <= 10")
	s.Must(t, "job", "rewind", name)
	s.wantExact(t)
}
