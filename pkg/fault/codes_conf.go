package fault

// Codes of the area CONF: configuration of a process. Numbers are never reused (F2); append at the end.
const (
	ConfInvalid      Code = "WEIR-CONF-001" // the configuration is not valid
	ConfUnknownEnv   Code = "WEIR-CONF-002" // an environment variable with Weir's prefix names no setting
	ConfBadReference Code = "WEIR-CONF-003" // a ${...} reference is malformed
	ConfUnresolved   Code = "WEIR-CONF-004" // a reference has no value on this node
	ConfSecretFile   Code = "WEIR-CONF-005" // a secret's file cannot be read
)

func confCodes() []Entry {
	return []Entry{
		{
			Code: ConfInvalid, Name: "CONF_INVALID", Class: Permanent, Exit: ExitRequest,
			Title:  "the configuration is not valid",
			Remedy: "Correct the listed places. `<service> config print` shows the effective configuration.",
		},
		{
			Code: ConfUnknownEnv, Name: "CONF_UNKNOWN_ENV", Class: Permanent, Exit: ExitRequest,
			Title:  "an environment variable with Weir's prefix names no setting",
			Remedy: "Correct the spelling or unset it. `<service> config print --env` lists every variable.",
		},
		{
			Code: ConfBadReference, Name: "CONF_BAD_REFERENCE", Class: Permanent, Exit: ExitRequest,
			Title:  "a ${...} reference is malformed",
			Remedy: "Write ${VAR}, ${VAR:-default} or ${file:/path}; write $${ for a literal ${.",
		},
		{
			Code: ConfUnresolved, Name: "CONF_UNRESOLVED", Class: Permanent, Exit: ExitRequest,
			Title:  "a reference has no value on this node",
			Remedy: "Set the variable <ref> for the process that runs this part, or give a default: ${VAR:-default}.",
		},
		{
			Code: ConfSecretFile, Name: "CONF_SECRET_FILE", Class: Permanent, Exit: ExitRequest,
			Title:  "a secret's file cannot be read",
			Remedy: "Make <ref> readable for the process that runs this part.",
		},
	}
}
