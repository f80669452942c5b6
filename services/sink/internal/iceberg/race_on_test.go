//go:build race

package iceberg

// raced says that this run looks for races, at ten times the price of memory. What one goroutine does in turn is run in full by
// `make flows`, without the detector; here are the parts in which goroutines meet.
const raced = true
