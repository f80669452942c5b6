package spec

import "weir.dev/weir/pkg/config"

// GeneratorSource makes rows up. Row i of a source is a function of the seed and i alone, so any reader can make it
// again from its position: the source is replayable like a log.
type GeneratorSource struct {
	Rows            int64  `yaml:"rows" default:"0" min:"0" doc:"Changes to make in all; 0: endless."`
	Rate            int64  `yaml:"rate" default:"0" min:"0" doc:"Changes per second in all; 0: as fast as they are taken."`
	Tables          int    `yaml:"tables" default:"1" min:"1" max:"1000" doc:"Number of tables; changes go to them in turn."`
	Columns         int    `yaml:"columns" default:"4" min:"1" max:"500" doc:"Columns of each table besides its key."`
	Keys            int64  `yaml:"keys" default:"1000" min:"0" doc:"Distinct keys of each table: the first change of a key is an insert, later ones are updates; 0: every change inserts a new key."`
	Deletes         int    `yaml:"deletes" default:"0" min:"0" max:"50" doc:"Percent of the changes of existing keys that are deletes; the next change of the key is an insert again."`
	Seed            uint64 `yaml:"seed" default:"1" doc:"Two sources with the same settings and seed make the same changes."`
	TransactionRows int    `yaml:"transaction_rows" default:"1" min:"1" max:"1000000" doc:"Changes that form one source transaction."`
	Readers         int    `yaml:"readers" default:"1" min:"1" max:"64" doc:"Parallel readers; each makes the changes of its own keys."`
}

// Parallelism returns the number of readers.
func (c *GeneratorSource) Parallelism() int { return c.Readers }

func (c *GeneratorSource) secrets() []config.Secret { return nil }

func (c *GeneratorSource) check(d *config.Decoder, n *config.Node) {
	if keys := n.Get("keys"); c.Deletes > 0 && keys != nil && keys.Text == "0" {
		d.Problem(n.Get("deletes"), "deletes need a bounded number of keys: set keys above 0")
	}
	if c.Keys > 0 && int64(c.Readers) > c.Keys {
		d.Problem(n.Get("readers"), "there are more readers than keys")
	}
}
