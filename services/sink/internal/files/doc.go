// Package files is the sink that writes Parquet or JSON lines into a directory, an epoch at a time.
//
// Role: writers write data files in place under names that no reader looks at; the committer gives them their names and
// makes them part of the table by one manifest for each epoch. Layout under the path of the spec:
//
//	_manifest/<epoch>.json              the commit point and the ledger: which files the epoch added, and its predecessor
//	_manifest/claims/<fence>.<life>     one for each attempt that claimed; the highest fence owns the ledger
//	<schema>.<table>/e<epoch>-<writer>.parquet    data of a committed epoch (…-<writer>-<n> for further files of it)
//	<schema>.<table>/.e<epoch>-…tmp     staged; .open-…tmp being written
//
// A reader trusts the files that manifests name, and nothing else.
//
// Invariants:
//   - A manifest appears whole or not at all, once: it is written and synced under another name and hard-linked to its own,
//     which fails when the name is taken. Data files and their directories are synced before it.
//   - A manifest names its predecessor; one that does not follow the newest is never made (LEDGER_DIVERGED).
//   - I8: claims are files made create-only, so the highest fence is known without a lock that a frozen process could hold.
//
// Failure, by where the power goes:
//   - While writing: .open files. The next attempt's writer of the same number removes those of lower fences.
//   - After Stage: the file and its name are synced. When an ack of its epoch was durable the next committer commits it; else
//     nothing names it, and the sweep after a later commit removes it: epoch ids are never used twice, so a staged file whose
//     id is not above a committed epoch can never be named again.
//   - While committing, before the manifest: data files may have their final names already. No manifest names them. The
//     commit is repeated from the same durable epoch and finds the same link (same inode) or makes it again.
//   - After the manifest, before the reply: the repeated commit finds its epoch in the newest manifest: done. Staged names that
//     are still there are swept.
//   - A zombie frozen between its look at the claims and the link: it can only publish the epoch that is durable, with the same
//     bytes for (epoch, digest, files) as its successor; one of the two links wins and the other reads it and finds it done.
//
// Source: docs/architecture.md; the create-only manifest follows the commit protocol of table formats on object stores.
package files
