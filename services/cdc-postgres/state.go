package cdcpostgres

import (
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// stateVersion is the version of both states. A reader of another version stops.
const stateVersion = 2

// enumeratorState is what an epoch keeps of the enumerator. From the first durable epoch on the slot it names is the
// only one the job may read, and is never made again silently.
type enumeratorState struct {
	Version     int    `json:"version"`
	Slot        string `json:"slot"`
	Publication string `json:"publication"`
	// Published is the publication's OID: log from before it was made again cannot be read through it.
	Published uint32          `json:"published,omitempty"`
	Start     position.LSN    `json:"start"` // the slot's consistent point: everything after it is in the log
	System    pgrepl.System   `json:"system"`
	Database  uint32          `json:"database"`
	Tables    []capturedTable `json:"tables"`
	// Again is the last order to copy tables anew that was taken.
	Again uint64 `json:"again,omitempty"`
	// Applied is the last change of the spec that was taken.
	Applied uint64 `json:"applied,omitempty"`
	// Restored is the last order to go on from an older epoch that was carried out.
	Restored uint64 `json:"restored,omitempty"`
	// Gone are the tables that were captured once and are no more, with the last version of their schema: rows of them are
	// at the sinks.
	Gone map[rows.TableID]schemaVersion `json:"gone,omitempty"`
	// Standing tells readers that the log waits until it is asked to pause; it is in no epoch.
	Standing bool `json:"standing,omitempty"`
	// Copy is the state of the copy and, while no reader has it, of the log.
	Copy []byte `json:"copy,omitempty"`
}

// schemaVersion is the last schema of a table that the reader has sent.
type schemaVersion struct {
	Version     uint32 `json:"version"`
	Fingerprint string `json:"fingerprint"`
	// Columns are what the columns of the next one are compared with.
	Columns core.Columns `json:"columns"`
}

// readerState is where the log is, and what has been told of it.
type readerState struct {
	Version  int                            `json:"version"`
	Position core.Position                  `json:"position"`
	Schemas  map[rows.TableID]schemaVersion `json:"schemas"`
}

// cover gives every table the veil of this process.
func (s *enumeratorState) cover(v *veil) {
	for i := range s.Tables {
		s.Tables[i].veil = v
	}
}

// position is where a log is read from that has, or has not, been read before.
func (s *enumeratorState) position(log *readerState) core.Position {
	if log != nil {
		return log.Position
	}
	return core.Position{End: s.Start}
}

func decodeState[T any](data []byte, where string, version func(*T) int) (*T, error) {
	var s T
	err := json.Unmarshal(data, &s)
	if err != nil {
		return nil, fault.Wrap(err, fault.SrcPosition, where, "the saved state is not readable")
	}
	if v := version(&s); v != stateVersion {
		return nil, fault.New(fault.SrcPosition, where, fmt.Sprintf("the saved state has version %d, this build reads %d", v, stateVersion))
	}
	return &s, nil
}

func decodeEnumeratorState(data []byte, where string) (*enumeratorState, error) {
	return decodeState(data, where, func(s *enumeratorState) int { return s.Version })
}

func decodeReaderState(data []byte, where string) (*readerState, error) {
	return decodeState(data, where, func(s *readerState) int { return s.Version })
}
