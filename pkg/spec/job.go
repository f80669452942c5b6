package spec

import (
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
)

// APIVersion is the version of the format that this package reads.
const APIVersion = "weir/v1"

// Guarantee is what the user asks for; the plan refuses what the job cannot give.
type Guarantee string

// The guarantees.
const (
	ExactlyOnce Guarantee = "exactly_once"
	AtLeastOnce Guarantee = "at_least_once"
)

// Job is one job spec with its defaults applied. Sources, transforms and sinks are in the order of the text.
type Job struct {
	APIVersion string    `yaml:"apiVersion,required" enum:"weir/v1" doc:"Version of this format."`
	Name       string    `yaml:"job,required" pattern:"[a-z][a-z0-9-]{0,31}" hint:"lower-case letters, digits and dashes, at most 32, a letter first" doc:"Name of the job. It is part of slot, stream and ledger names."`
	Guarantee  Guarantee `yaml:"guarantee" enum:"exactly_once,at_least_once" default:"exactly_once" doc:"What the job promises. A job that cannot keep it is refused at submit. at_least_once does not wait for the slowest channel at an epoch; after a failure some rows come again."`
	Epoch      Epoch     `yaml:"epoch" doc:"When consistent cuts are taken."`
	Restart    Restart   `yaml:"restart" doc:"What happens after a failure that may pass."`
	Sources    Sources   `yaml:"sources,required" doc:"Where rows come from, by name."`
	_          struct{}  `yaml:"transforms" later:"true"`
	Sinks      Sinks     `yaml:"sinks,required" doc:"Where rows go, by name."`
}

// Epoch says when consistent cuts are taken and when they are given up.
type Epoch struct {
	Interval           config.Duration `yaml:"interval" default:"1s" min:"10ms" max:"10m" doc:"Time from one epoch to the next. Shorter: fresher targets; longer: larger commits."`
	Timeout            config.Duration `yaml:"timeout" default:"60s" min:"1s" max:"24h" doc:"An epoch that is not durable by then is skipped; the next one covers it."`
	IdleInterval       config.Duration `yaml:"idle_interval" default:"10s" min:"1s" max:"1h" doc:"Time between epochs while no input arrives."`
	MaxBytes           config.Bytes    `yaml:"max_bytes" default:"256MiB" min:"1MiB" max:"16GiB" doc:"A writer whose open epoch is larger makes its sources wait; at half of it an epoch is asked for early."`
	MaxTransactionRows int             `yaml:"max_transaction_rows" default:"1000000" min:"1000" max:"1000000000" doc:"A source transaction with more rows may be spread over several epochs."`
	MaxUncommitted     int             `yaml:"max_uncommitted" default:"2" min:"1" max:"100" doc:"Durable epochs which may wait for a slow sink before no new one is taken."`
}

// Restart says how a job is started again after a failure that may pass.
type Restart struct {
	Backoff config.Duration `yaml:"backoff" default:"1s" min:"10ms" max:"10m" doc:"Pause before the first restart; it doubles with each further one."`
	Cap     int             `yaml:"cap" default:"10" min:"0" max:"10000" doc:"Restarts within the window before the job fails for good."`
	Window  config.Duration `yaml:"window" default:"10m" min:"1s" max:"24h" doc:"See cap."`
}

// Source is one source of a job.
type Source struct {
	Name   string
	Type   string
	Config SourceConfig
}

// Sources are in the order of the text.
type Sources []Source

// Sink is one sink of a job.
type Sink struct {
	Name         string
	From         []string `yaml:"from,required" doc:"Names of the sources and transforms whose rows it takes."`
	Type         string
	Mode         Mode         `yaml:"mode" enum:"upsert,changelog,append" default:"upsert" doc:"upsert: the target equals the source; changelog: one row for each change; append: the new image of each change."`
	Writers      int          `yaml:"writers" default:"1" min:"1" max:"64" doc:"Parallel writers; each owns a part of the keys."`
	DLQ          bool         `yaml:"dlq" default:"false" doc:"Set rows aside that the target can never take, as dead letters, and go on. Without it such a row fails the job."`
	SchemaChange SchemaChange `yaml:"schema_change" enum:"evolve,try_evolve,lenient,ignore,exception" default:"lenient" doc:"What happens to the target's columns when those of a source table change. lenient: nothing of the target is taken away; evolve: it becomes as the source; try_evolve: the same, without what the target refuses; ignore: it stays; exception: the job stops."`
	Special      string       `yaml:"special" later:"true"`
	Batch        string       `yaml:"batch" later:"true"`
	Config       SinkConfig
}

// Mode is how changes become rows of the target.
type Mode string

// The modes.
const (
	Upsert    Mode = "upsert"
	Changelog Mode = "changelog"
	Append    Mode = "append"
)

// SchemaChange is what a sink does when the columns of a source table change.
type SchemaChange string

// The ways to treat changes of columns; docs/schema-changes.md has the table.
const (
	// Evolve makes the target as the source: columns are added, dropped, renamed, and change their types.
	Evolve SchemaChange = "evolve"
	// TryEvolve is Evolve, but a change that the target refuses is left out with a warning.
	TryEvolve SchemaChange = "try_evolve"
	// Lenient adds columns and widens types and takes nothing away.
	Lenient SchemaChange = "lenient"
	// Ignore leaves the target's columns as they are and goes on with those that both have.
	Ignore SchemaChange = "ignore"
	// Exception stops the job at any change.
	Exception SchemaChange = "exception"
)

// Sinks are in the order of the text.
type Sinks []Sink

// Parse reads a job spec. filename is used in the error only. The error is a *fault.Error whose Problems are all that is
// wrong, in the order of the text.
func Parse(data []byte, filename string) (*Job, error) {
	root, problems := config.Parse(data)
	d := config.Decoder{Problems: problems}
	var job Job
	if root != nil {
		d.Decode(root, &job)
		if root.Kind == config.Map {
			job.check(&d, root)
		}
	}
	if len(d.Problems) == 0 {
		return &job, nil
	}
	config.SortProblems(d.Problems)
	err := fault.New(fault.SpecInvalid, filename, "", "file", filename)
	err.Problems = d.Problems
	return nil, err
}

// Source returns the source with this name.
func (j *Job) Source(name string) (Source, bool) {
	for _, s := range j.Sources {
		if s.Name == name {
			return s, true
		}
	}
	return Source{}, false
}

// Sink returns the sink with this name.
func (j *Job) Sink(name string) (Sink, bool) {
	for _, s := range j.Sinks {
		if s.Name == name {
			return s, true
		}
	}
	return Sink{}, false
}
