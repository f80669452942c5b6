package spec

import "weir.dev/weir/pkg/config"

// FilesSink writes files into a directory, one set per epoch.
type FilesSink struct {
	Files FilesTarget `yaml:"files,required" doc:"Where and how files are written."`
}

// FilesTarget says where files go and what they are.
type FilesTarget struct {
	Path   config.Text `yaml:"path,required" doc:"Directory. Writers and committer of the sink run on the node that has it."`
	Format FileFormat  `yaml:"format" enum:"parquet,jsonl" default:"parquet" doc:"parquet, or jsonl: one JSON object in a line."`
}

// FileFormat is the format of data files.
type FileFormat string

// The file formats.
const (
	Parquet   FileFormat = "parquet"
	JSONLines FileFormat = "jsonl"
)

func (c *FilesSink) secrets() []config.Secret { return nil }

func (c *FilesSink) check(d *config.Decoder, n *config.Node) {
	// A file has the columns of its own rows; there is no table whose columns could be kept.
	switch at := n.Get("schema_change"); {
	case at == nil:
	case at.Text == string(Ignore) || at.Text == string(Exception):
		d.Problem(at, "files begin anew with the columns that rows have; allowed: evolve, try_evolve, lenient")
	}
}
