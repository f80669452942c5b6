package core

// The columns that a changelog has after those of its table, in this order. ColOp has the numbers of rows.Op; (ColTxn, ColOrd)
// names a change the same way on every replay; ColAbsent lists the columns that the source did not send.
const (
	ColOp     = "_op"
	ColSeq    = "_seq"
	ColTs     = "_ts"
	ColTxn    = "_txn"
	ColOrd    = "_ord"
	ColEpoch  = "_epoch"
	ColAbsent = "_absent"
)
