// Package drive drives the two halves of one sink by hand, without a mesh: a test stages an epoch, commits it, and says in
// between what goes wrong. itest/sink and itest/sinkmysql have their databases' cases on it.
//
// Role: [Attempt] is an attempt of one sink, [Row] and its makers are the changes it is given. [Database] is a target as such
// a case sees it; what holds for every database is here as well ([Swept], [CellsOf]).
//
// Failure: whatever a case does not ask about ends its test.
package drive
