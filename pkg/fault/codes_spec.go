package fault

// Codes of the area SPEC: job specs. Numbers are never reused (F2); append at the end.
const (
	SpecInvalid       Code = "WEIR-SPEC-001" // the job spec is not valid
	SpecLiteralSecret Code = "WEIR-SPEC-002" // the spec holds a password in clear text
	SpecUnsupported   Code = "WEIR-SPEC-003" // the spec asks for something that is not in this build
)

func specCodes() []Entry {
	return []Entry{
		{
			Code: SpecInvalid, Name: "SPEC_INVALID", Class: Permanent, Exit: ExitRequest,
			Title:  "the job spec is not valid",
			Remedy: "Correct the listed places; `weir validate <file>` checks again, `weir schema` prints what is allowed.",
		},
		{
			Code: SpecLiteralSecret, Name: "SPEC_LITERAL_SECRET", Class: Permanent, Exit: ExitRequest,
			Title:  "the spec holds a password in clear text",
			Remedy: "Move it out of the file: url: ${PGURL} or url: ${file:/run/secrets/pg}.",
		},
		{
			Code: SpecUnsupported, Name: "SPEC_UNSUPPORTED", Class: Permanent, Exit: ExitRequest,
			Title:  "the spec asks for something that is not in this build",
			Remedy: "Use one of the allowed values, or a build that has it.",
		},
	}
}
