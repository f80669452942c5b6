// Package big holds the product against what is larger than memory should be: values of tens of megabytes, tables without a
// key, transactions of millions of rows, and databases that write much beside the one that is read.
//
// # Role
//
// Each test runs the services as processes of their own, so that the resident memory of the source is its own too
// ([scene.watch]).
//
// # Invariants
//
//   - What arrives is what was written, also when the source is killed in the middle of it.
//   - The source's memory does not grow with the size of a table or of a transaction.
//   - What cannot pass stops the job with a code and names the table; nothing behind it is delivered ahead of it.
//
// # Failure
//
// ITEST_BIG=1 runs the sizes that docs/bench/memory.md is about; without it the same tests run small.
package big
