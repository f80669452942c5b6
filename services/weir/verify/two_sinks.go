package verify

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// twoSinks is what targets in databases have in common: a copy and a changelog, each in a schema with a ledger of its own.
type twoSinks struct {
	id string
	// kind is the type of the sinks, space the key of their spec that names the schema, word what a committer sends to end its transaction.
	kind, space, word string
}

func (p *twoSinks) schema(sink string) string { return p.id + "_" + sink }

// spec: the copy has one writer, since a shop changes keys.
func (p *twoSinks) spec(writers int, letters bool) string {
	return fmt.Sprintf(`
  copy: {from: [db], type: %[1]s, url: "${VERIFY_TARGET}", %[2]s: %[3]s, mode: upsert, dlq: %[4]t}
  log: {from: [db], type: %[1]s, url: "${VERIFY_TARGET}", %[2]s: %[5]s, mode: changelog, writers: %[6]d}`,
		p.kind, p.space, p.schema(copying), letters, p.schema(logging), writers)
}

func (p *twoSinks) parallel() bool { return true }

func (p *twoSinks) sinks() []string { return []string{copying, logging} }

func (p *twoSinks) begin(context.Context) error { return nil } // the sinks make their own

func (p *twoSinks) judged(context.Context) (bool, error) { return false, nil }

func (p *twoSinks) before(ctx context.Context, t *trial) error {
	return p.cut(ctx, t, true, "the connection breaks at COMMIT, before the target has it")
}

func (p *twoSinks) after(ctx context.Context, t *trial) error {
	return p.cut(ctx, t, false, "the connection breaks when the target has COMMIT, before its reply")
}

func (p *twoSinks) cut(ctx context.Context, t *trial, before bool, what string) error {
	err := t.strike(what, func() (string, error) {
		made := t.target.Cuts()
		t.target.CutAfter(p.word, before)
		err := t.until(ctx, "a COMMIT", func(context.Context) error {
			if t.target.Cuts() == made {
				return errors.New("none yet")
			}
			return nil
		})
		return "1 connection cut at COMMIT", err
	})
	if err != nil {
		return err
	}
	return t.recovered(ctx)
}

// within kills the committer while the target works inside its transaction.
func (p *twoSinks) within(ctx context.Context, t *trial) error {
	return t.killHeld(ctx, "the committer inside its transaction")
}

func (p *twoSinks) away(_ context.Context, t *trial) (what string, back func() error, err error) { //nolint:unparam // as target has it
	t.target.Refuse()
	return "the target's connections are broken, and new ones are", t.healed, nil
}

func (p *twoSinks) slow(_ context.Context, t *trial) (what string, back func() error, err error) { //nolint:unparam // as target has it
	t.target.Delay(300 * time.Millisecond)
	return "each piece of what sinks send is 300 ms late", t.healed, nil
}

// healed ends what has been done to the target's line.
func (t *trial) healed() error {
	t.target.Heal()
	return nil
}
