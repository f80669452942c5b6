package sourcetest

import (
	"sync"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/source"
)

// letter is what a loop finds between two polls.
type letter struct {
	kind    letterKind
	reader  int // who sent a message
	payload []byte
	epoch   epoch.ID
	cut     source.Cut
}

type letterKind uint8

const (
	messageLetter letterKind = iota
	barrierLetter
	durableLetter
	confirmLetter
	drainLetter
)

// mailbox is what others leave for a loop. It wakes the loop's poll as the mesh does.
type mailbox struct {
	wake chan struct{}

	mu      sync.Mutex
	letters []letter
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) put(l letter) {
	m.mu.Lock()
	m.letters = append(m.letters, l)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take empties the mailbox. The signal is taken first, as the mesh does, so that what comes meanwhile wakes again.
func (m *mailbox) take() []letter {
	select {
	case <-m.wake:
	default:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.letters
	m.letters = nil
	return l
}
