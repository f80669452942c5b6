// Package badinput gives the product what is wrong with real set-ups and expects to be told what to do.
//
// # Role
//
// One mesh, many jobs: each has one thing wrong. The test sees the code and a remedy where a person looks (status,
// events), does what the remedy says, resumes the job and compares target and source.
//
// # Invariants
//
//   - B1: every password that is used, right or wrong, is a canary: at the end none of them is in anything that was
//     written, stored or published (TestBadInput's last part).
//   - B2: a repair is made through the thing that was wrong, never by a new job.
//
// # Failure
//
// Jobs do not share databases, so one that goes wrong fails its own test only.
package badinput
