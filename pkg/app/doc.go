// Package app is the frame of every process: settings, logs, telemetry, health, signals, exit code.
//
// Role. A service is a function Run(ctx, Env, Config) that blocks until its work is over; [Main] calls it in a process of
// its own, the all-in-one calls it with an [Env] it made itself. The parts ([Health], [Server], [Signals]) can be used
// alone.
//
// Invariants.
//   - A1: settings are strict and complete before anything starts; precedence is flag, environment, file, default.
//   - A2: /readyz is red from the first signal on, until Run has called Ready, and while any registered check
//     fails; it says which.
//   - A3: the first signal ends the context of Run with cause [ErrStopped]; the second one, or the end of the grace period,
//     ends the process at once with 130, 143 or 5. What is durable is not touched by either.
//   - A4: every end has one exit code, that of package fault; a stop that was asked for is 0.
//
// Failure. A panic of Run is logged with its stack and ends the process with 1, not with the 2 of the Go runtime, which
// would read as a bad request.
//
// Source. Surface: exit codes, endpoints; house style, services.
package app
