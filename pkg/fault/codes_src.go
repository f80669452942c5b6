package fault

// Codes of the area SRC: sources in general. Numbers are never reused (F2); append at the end.
const (
	SrcPosition      Code = "WEIR-SRC-001" // a saved position does not belong to this source
	SrcNotReplayable Code = "WEIR-SRC-002" // the source cannot be read again
	SrcUnreachable   Code = "WEIR-SRC-003" // cannot reach the source
	SrcTooBig        Code = "WEIR-SRC-004" // a row is larger than can be carried
	SrcColumns       Code = "WEIR-SRC-005" // a column cannot be left out or masked
)

func srcCodes() []Entry {
	return []Entry{
		{
			Code: SrcPosition, Name: "SRC_POSITION", Class: Permanent, Exit: ExitVerify,
			Title:  "a saved position does not belong to this source",
			Remedy: "The position was written by another kind or version of source. Submit the job under a new name.",
		},
		{
			Code: SrcNotReplayable, Name: "SRC_NOT_REPLAYABLE", Class: Permanent, Exit: ExitRequest,
			Title:  "the source cannot be read again",
			Remedy: "Use a source that keeps its changes.",
		},
		{
			Code: SrcUnreachable, Name: "SRC_UNREACHABLE", Class: Transient, Exit: ExitEnvironment, Away: true,
			Title:  "cannot reach the source",
			Remedy: "Bring the source back or correct its address at <where>. Reading goes on by itself; nothing is lost while the source keeps its log.",
		},
		{
			Code: SrcTooBig, Name: "SRC_ROW_TOO_BIG", Class: Poison, Exit: ExitEnvironment,
			Title:  "a row is larger than can be carried",
			Remedy: "Nothing behind it was delivered. Leave the column of large values out, by <where>.columns.exclude, or the table, by <where>.tables, and submit the job under a new name.",
		},
		{
			Code: SrcColumns, Name: "SRC_COLUMNS", Class: Permanent, Exit: ExitRequest,
			Title:  "a column cannot be left out or masked",
			Remedy: "Correct <pattern> in <where>.columns, or leave the table out of <where>.tables.",
		},
	}
}
