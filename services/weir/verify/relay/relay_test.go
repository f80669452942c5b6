package relay_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/services/weir/verify/relay"
)

// echo is a server that says what it hears, and tells when it has heard something.
func echo(t *testing.T) (url string, heard <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	said := make(chan string, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 1<<10)
				for {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					said <- string(buf[:n])
					if _, err := conn.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "tcp://" + l.Addr().String(), said
}

// begin puts a relay before an echo and connects through it.
func begin(t *testing.T) (r *relay.Relay, conn net.Conn, heard <-chan string, dial func() (net.Conn, error)) {
	t.Helper()
	url, heard := echo(t)
	r, err := relay.Start(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	way := strings.TrimPrefix(r.URL(url), "tcp://")
	dial = func() (net.Conn, error) { return net.Dial("tcp", way) }
	if conn, err = dial(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	say(t, conn, "hello")
	<-heard
	return r, conn, heard, dial
}

// say sends a word and waits for it to come back.
func say(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	if err := ask(conn, word, 10*time.Second); err != nil {
		t.Fatal(err)
	}
}

func ask(conn net.Conn, word string, within time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return err
	}
	back := make([]byte, len(word))
	if _, err := io.ReadFull(conn, back); err != nil {
		return err
	}
	if string(back) != word {
		return fmt.Errorf("%q came back as %q", word, back)
	}
	return nil
}

func TestCutAfter(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		r, conn, heard, _ := begin(t)
		r.CutAfter("COMMIT", before)
		say(t, conn, "ROLLBACK")
		<-heard
		if err := ask(conn, "COMMIT", 10*time.Second); err == nil || r.Cuts() != 1 {
			t.Errorf("before %t: the reply came all the same: %v, %d cuts", before, err, r.Cuts())
		}
		if !before {
			if word := <-heard; word != "COMMIT" {
				t.Errorf("the server has heard %q", word)
			}
			continue
		}
		r.Close() // what was under way has arrived, or never will
		if len(heard) > 0 {
			t.Errorf("the server has heard %q", <-heard)
		}
	}
}

func TestPartHoldsBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	r, conn, heard, _ := begin(t)
	r.Part(relay.Replies)
	if err := ask(conn, "one", 100*time.Millisecond); err == nil {
		t.Error("a reply passed the partition")
	}
	if word := <-heard; word != "one" {
		t.Errorf("the server has heard %q", word)
	}
	r.Heal()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 3)
	if _, err := io.ReadFull(conn, back); err != nil || string(back) != "one" {
		t.Errorf("after the partition: %q, %v", back, err)
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	r, conn, _, dial := begin(t)
	r.Refuse()
	if err := ask(conn, "x", 10*time.Second); err == nil {
		t.Error("the old connection lives")
	}
	if again, err := dial(); err == nil {
		if err := ask(again, "x", 10*time.Second); err == nil {
			t.Error("a new connection is served")
		}
		again.Close()
	}
	r.Heal()
	again, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	say(t, again, "y")
}

func TestCutReplies(t *testing.T) {
	t.Parallel()
	r, conn, _, _ := begin(t)
	r.CutReplies(10)
	say(t, conn, "123456")
	if err := ask(conn, "123456", 10*time.Second); err == nil || r.Cuts() != 1 {
		t.Errorf("more than 10 bytes came back: %v, %d cuts", err, r.Cuts())
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	r, err := relay.Start(context.Background(), "nats://127.0.0.1:4222,nats://127.0.0.1:4223")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := r.URL("nats://127.0.0.1:4222,nats://127.0.0.1:4224")
	if strings.Contains(got, ":4222") || !strings.HasSuffix(got, ",nats://127.0.0.1:4224") {
		t.Errorf("through the relay: %s", got)
	}
	if one := r.URL("postgres://u:p@127.0.0.1:4223/db?x=1"); strings.Contains(one, ":4223") || !strings.HasSuffix(one, "/db?x=1") || !strings.Contains(one, "u:p@") {
		t.Errorf("through the relay: %s", one)
	}
}
