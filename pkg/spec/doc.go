// Package spec is the job spec: what a user asks for.
//
// Role. [Parse] turns YAML (or the canonical JSON of [Job.Canonical], which is YAML too) into a [Job] that is complete
// and valid by itself, or into an error with every problem. What a spec means for a plan, and whether the outside world
// agrees with it, is decided elsewhere.
//
// Invariants.
//   - S1: a key or word that is not known is refused; one that is known but not in this build is refused as such. What a
//     Job holds, some service of this build obeys.
//   - S2: references (${...}) are kept as written. No value of a reference is ever part of a Job, its digest or its
//     stored form; Job values print no literal secret.
//   - S3: Parse(Canonical(j)) equals j, and both have the same digest.
//   - S4: table names match exactly: letter case counts, only * is special, and a quoted name has no special letters.
//   - S5: the JSON Schema accepts the same keys as the parser.
//
// Failure. Parsing has no side effects. An error is a *fault.Error with code SPEC_INVALID and the list of problems.
//
// Source. The struct tags are the reference of the format; schemas/job.schema.json is generated from them. A new kind of
// source or sink is one file with its configuration and one line in sourceKinds or sinkKinds.
package spec

//go:generate go run ./gen ../../schemas/job.schema.json
