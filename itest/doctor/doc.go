// Package doctor proves that `weir doctor` is right: each finding is provoked on a real PostgreSQL server, its remedy is
// executed as it is printed, and the finding is gone. The text form is a golden, no password is printed anywhere, and the
// grant script makes a job of a fresh role start.
package doctor
