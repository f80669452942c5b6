// Package audit tries the audit of `weir verify` and its load on real servers: what they must find, they find.
package audit
