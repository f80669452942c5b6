// Package inspect proves what people are told about looking inside: every command of docs/inspect.md runs against a live
// mesh and shows what the page says, `weir bus` prints commands of that page, what `weir doctor` finds wrong with a NATS
// server is gone behind the commands it prints, and `weir support-bundle` holds no secret and no value of a row.
package inspect
