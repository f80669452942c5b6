package relay

import (
	"bytes"
	"sync"
)

// gate holds back who comes while it is shut. The zero gate is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) wait() {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened != nil {
		<-opened
	}
}

// trip goes off at a word, once for each order. The zero trip waits for none.
type trip struct {
	mu     sync.Mutex
	word   []byte
	before bool
	left   int // bytes of replies, when armed
	counts bool
	done   int
}

func (t *trip) arm(word string, before bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.word, t.before = []byte(word), before
}

func (t *trip) due(data []byte) (cut, before bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.word == nil || !bytes.Contains(data, t.word) {
		return false, false
	}
	t.word = nil
	t.done++
	return true, t.before
}

func (t *trip) allow(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left, t.counts = n, true
}

// spent takes n bytes off; true when that was the last.
func (t *trip) spent(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.counts {
		return false
	}
	if t.left -= n; t.left > 0 {
		return false
	}
	t.counts = false
	t.done++
	return true
}

func (t *trip) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done
}
