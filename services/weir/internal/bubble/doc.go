// Package bubble is the suite of the assembled mesh: coordinators and nodes on a real JetStream server in one
// testing/synctest bubble, judged by the validators of pkg/meshtest. It has no code of its own.
package bubble
