package cdcmysql

import (
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// stateVersion is the version of both states. A reader of another version stops.
const stateVersion = 1

// enumeratorState is what an epoch keeps of the enumerator.
type enumeratorState struct {
	Version int             `json:"version"`
	Start   core.Point      `json:"start"` // everything behind it is in the log
	UUID    string          `json:"uuid"`  // of the server; positions in files belong to it
	Tables  []capturedTable `json:"tables"`
	// Again is the last order to copy tables anew that was taken.
	Again uint64 `json:"again,omitempty"`
	// Applied is the last change of the spec that was taken.
	Applied uint64 `json:"applied,omitempty"`
	// Gone are the tables that were captured once and are no more, with the last version of their schema: rows of them are at the
	// sinks.
	Gone map[rows.TableID]schemaVersion `json:"gone,omitempty"`
	// Resume is where the log is read on in this attempt. It tells the reader of the log what must not be purged before it has the
	// log itself.
	Resume core.Point `json:"resume,omitzero"`
	// Standing tells readers that the log waits until it is asked to pause, and Charsets the names of character sets by the
	// numbers of collations; neither they nor Resume are in an epoch.
	Standing bool              `json:"standing,omitempty"`
	Charsets map[uint64]string `json:"charsets,omitempty"`
	MariaDB  bool              `json:"mariadb,omitempty"`
	// Copy is the state of the copy and, while no reader has it, of the log.
	Copy []byte `json:"copy,omitempty"`
}

// schemaVersion is the last schema of a table that the reader has sent.
type schemaVersion struct {
	Version     uint32 `json:"version"`
	Fingerprint string `json:"fingerprint"`
	// Columns are the columns of it, by name. Filled is what rows have in those that were added since the table was captured, if they
	// are from before.
	Columns []string          `json:"columns,omitempty"`
	Filled  map[string]string `json:"filled,omitempty"`
}

// readerState is where the log is, and what has been told of it.
type readerState struct {
	Version  int                            `json:"version"`
	Position core.Position                  `json:"position"`
	Schemas  map[rows.TableID]schemaVersion `json:"schemas"`
	// Pending are the distributed transactions that were prepared before the position.
	Pending []pending `json:"pending,omitempty"`
}

// mustMarshal writes values of this package's own types, which always can be.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("cdcmysql: state cannot be written: " + err.Error())
	}
	return b
}

func decodeState[T any](data []byte, where string, version func(*T) int) (*T, error) {
	var s T
	if err := json.Unmarshal(data, &s); err != nil {
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
