// Package web serves what a board shows: JSON, events and the page.
//
// Role: the only part of the progress service that speaks HTTP.
//
// Invariants:
//   - Every error is problem+json with our code.
//   - With a token, nothing about jobs is answered without it; the page's files hold nothing about jobs.
//   - A listener never slows the watcher or another listener; there are at most maxListeners.
//   - The page needs nothing from another host and says so by its content security policy.
//
// Failure: a listener that lost its connection begins again with the whole state.
//
// Source: RFC 9457 problem details; RFC 6750 bearer tokens; WHATWG HTML, server-sent events; OpenAPI 3.1.
package web
