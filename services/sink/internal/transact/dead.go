package transact

import (
	"context"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/stage"
)

// Dead are the rows that one commit leaves out because they have a letter.
type Dead struct {
	*stage.Dead

	letters sink.DeadLetters
	codec   *stage.Codec
	blank   sink.Letter // what is the same in all of the commit
}

// NewDead asks which letters the epoch has. open is what the target's register says, codec writes rows into letters.
func NewDead(ctx context.Context, cfg sink.Config, commit sink.Commit, open stage.OpenKeys, codec *stage.Codec) (*Dead, error) {
	ids, err := cfg.Letters.Stored(ctx, commit.Ref.Epoch)
	if err != nil {
		return nil, err
	}
	return &Dead{
		Dead: stage.NewDead(ids, cfg.Sink.Mode, open), letters: cfg.Letters, codec: codec,
		blank: sink.Letter{
			LetterID: sink.LetterID{Epoch: commit.Ref.Epoch}, Job: cfg.Job, Life: cfg.Life, Sink: cfg.Sink.Name, Positions: commit.Positions,
		},
	}, nil
}

// Put makes the letter of the one row of a group safe, before the epoch is committed without it. s is the table's schema.
func (d *Dead) Put(ctx context.Context, g stage.Group, s *rows.Schema, why error) error {
	l := d.blank
	l.Fault = fault.Of(why)
	l, err := g.Describe(l, s, d.codec, time.Now())
	if err != nil {
		return err
	}
	if err := d.letters.Put(ctx, l); err != nil {
		return err
	}
	d.Bury(s, g.Batches[0], 0, g.First[0])
	return nil
}
