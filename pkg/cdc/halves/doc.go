// Package halves is what the shells of database sources have in common around the pure core of pkg/cdc.
//
// Role: [Enumerator] is the assigner with hands, for a source that can answer its questions ([Planner]) and look after its
// server (Watch). [Queue] carries the log from the goroutine that receives it to the one that emits, bounded by bytes.
// [Batches] gathers rows of many tables and ends each batch when it is full or old. [Spooling] carries tables without a key
// through the state stream.
//
// Invariants:
//   - The loops that answer barriers run no SQL: Planner and Watch run on goroutines of their own.
//   - What a planner cannot answer for now is asked again; what never can be answered ends the enumerator.
//   - Every cut names the segments of a spool from when they are stored until they are emitted; nothing of a spool is emitted
//     before a cut has named all of it.
//   - The rows of a table leave in their order, those of several tables in that in which the tables were first touched, but for
//     batches that are full before; and never after a Poll has returned.
//
// Failure: an error of a planner, of Watch or of the output ends the attempt, and with it the half.
//
// Source: pkg/cdc says which effects there are and what answers them.
package halves
