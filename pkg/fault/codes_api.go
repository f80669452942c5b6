package fault

// Codes of the area API: what the progress service answers. Numbers are never reused (F2); append at the end.
const (
	APIToken   Code = "WEIR-API-001" // the request has no valid token
	APINotHere Code = "WEIR-API-002" // there is nothing at this path
	APIMethod  Code = "WEIR-API-003" // the interface only reads
	APIBusy    Code = "WEIR-API-004" // too many listeners
	APIBehind  Code = "WEIR-API-005" // the registry was not read lately
	APIQuery   Code = "WEIR-API-006" // a parameter of the request is wrong
)

func apiCodes() []Entry {
	return []Entry{
		{
			Code: APIToken, Name: "API_TOKEN", Class: Permanent, Exit: ExitRequest,
			Title:  "the request has no valid token",
			Remedy: "Send the header `Authorization: Bearer TOKEN` with the token that the progress service was given.",
		},
		{
			Code: APINotHere, Name: "API_NOT_HERE", Class: Permanent, Exit: ExitRequest,
			Title:  "there is nothing at this path",
			Remedy: "GET /v1/openapi.json describes what there is.",
		},
		{
			Code: APIMethod, Name: "API_READS_ONLY", Class: Permanent, Exit: ExitRequest,
			Title:  "the interface only reads",
			Remedy: "Use GET. Jobs are changed on the command line; `weir job list` shows them.",
		},
		{
			Code: APIBusy, Name: "API_BUSY", Class: Transient, Exit: ExitEnvironment,
			Title:  "too many listeners",
			Remedy: "Ask again later, ask for single answers, or run another instance of the progress service.",
		},
		{
			Code: APIBehind, Name: "API_BEHIND", Class: Transient, Exit: ExitEnvironment,
			Title:  "the registry was not read lately",
			Remedy: "The progress service has no connection to NATS, or nobody has set the mesh up; /readyz says which.",
		},
		{
			Code: APIQuery, Name: "API_QUERY", Class: Permanent, Exit: ExitRequest,
			Title:  "a parameter of the request is wrong",
			Remedy: "Correct it; GET /v1/openapi.json describes the parameters.",
		},
	}
}
