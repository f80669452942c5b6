// Package support packs what somebody needs who helps from afar into one file.
//
// Role: it reads the records, the bus and the processes of a mesh and writes a gzipped tar of JSON and text files. The
// command line says where the mesh is and where the file goes.
//
// Invariants:
//   - No secret and no value of a row is in it: specs are redacted, inline state and staged data of manifests are left out
//     and only their sizes told, dead letters are counted, every text is scrubbed. A test plants canaries in a real flow.
//   - What cannot be read is named with the reason in index.json; it never ends the bundle.
//
// Failure: a bundle that could not be written whole is an error; the caller removes the file.
package support
