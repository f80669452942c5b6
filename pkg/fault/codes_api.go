package fault

// Codes of the area API: what the progress service answers. Numbers are never reused (F2); append at the end.
const (
	APIToken   Code = "WEIR-API-001" // the request has no valid token
	APINotHere Code = "WEIR-API-002" // there is nothing at this path
	APIMethod  Code = "WEIR-API-003" // the interface only reads
	APIBusy    Code = "WEIR-API-004" // too many listeners
	APIBehind  Code = "WEIR-API-005" // the registry was not read lately
	APIQuery   Code = "WEIR-API-006" // a parameter of the request is wrong

	APIWebhookAddress Code = "WEIR-API-007" // the address of the webhook cannot be used
	APIWebhookAway    Code = "WEIR-API-008" // the webhook takes no events now
	APIWebhookRefuses Code = "WEIR-API-009" // the webhook refuses events
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
		{
			Code: APIWebhookAddress, Name: "API_WEBHOOK_ADDRESS", Class: Permanent, Exit: ExitRequest,
			Title:  "the address of the webhook cannot be used",
			Remedy: "Set WEIR_PROGRESS_WEBHOOK to an address of the form https://host/path.",
		},
		{
			Code: APIWebhookAway, Name: "API_WEBHOOK_AWAY", Class: Transient, Exit: ExitEnvironment,
			Title:  "the webhook takes no events now",
			Remedy: "Nothing is lost: events wait and are sent again, with pauses of up to five minutes. Look at the receiver.",
		},
		{
			Code: APIWebhookRefuses, Name: "API_WEBHOOK_REFUSES", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the webhook refuses events",
			Remedy: "Events wait and are tried each five minutes. Correct WEIR_PROGRESS_WEBHOOK or WEIR_PROGRESS_WEBHOOK_SECRET, or the receiver, which answers 2xx to what it has taken.",
		},
	}
}
