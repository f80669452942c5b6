package report

import (
	"encoding/json"
	"fmt"
	"time"
)

// BatchVersion is the version of the batch's JSON form.
const BatchVersion = 1

// Batch is everything one node reports at one moment: its subject keeps the last one only.
type Batch struct {
	Version     int        `json:"version"`
	Node        string     `json:"node"`
	Incarnation string     `json:"incarnation"`
	At          time.Time  `json:"at"`
	Reports     []Envelope `json:"reports"`
}

// ParseBatch reads the JSON form; another version is an error.
func ParseBatch(b []byte) (Batch, error) {
	var v Batch
	if err := json.Unmarshal(b, &v); err != nil {
		return Batch{}, fmt.Errorf("parse report batch: %w", err)
	}
	if v.Version != BatchVersion {
		return Batch{}, fmt.Errorf("parse report batch: version %d, this build reads %d", v.Version, BatchVersion)
	}
	return v, nil
}
