package meshtest

import "bytes"

// Trip is a wire across a [Link]: it springs once, when clients send Match for the Nth time. So a test can end a process
// at any step that shows on the bus, just before or just after it.
type Trip struct {
	// Match is part of what the protocol puts on the wire: a subject, a header line.
	Match string
	// Nth counts from 1.
	Nth int
	// Before springs when the match is about to be sent, else right after the server has it.
	Before bool
	// Do runs in a goroutine of the client that holds the client's locks: it may use the Link, and nothing of the client.
	Do func()

	seen int
}

// Arm stretches a wire.
func (l *Link) Arm(t Trip) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Nth = max(t.Nth, 1)
	l.trips = append(l.trips, &t)
}

// Disarm takes all wires away that have not sprung.
func (l *Link) Disarm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trips = nil
}

// spring finds the wires that sending b touches.
func (l *Link) spring(b []byte) []*Trip {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sprung, left []*Trip
	for _, t := range l.trips {
		t.seen += bytes.Count(b, []byte(t.Match))
		if t.seen >= t.Nth {
			sprung = append(sprung, t)
		} else {
			left = append(left, t)
		}
	}
	if len(sprung) > 0 {
		l.trips = left
	}
	return sprung
}
