// Package schedules tests the assembled mesh against seeded schedules of faults. It has no code of its own.
package schedules
