package datadir

import (
	"os"
	"path/filepath"
	"testing"

	"weir.dev/weir/pkg/fault"
)

func TestASecondProcessIsRefusedAndTheFirstIsFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	if _, ok := Find(path); ok {
		t.Fatal("found a process in a directory that does not exist")
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Up{PID: 7, NATS: "nats://127.0.0.1:1", HTTP: "127.0.0.1:2"}
	if err := d.Announce(want); err != nil {
		t.Fatal(err)
	}
	if got, ok := Find(path); !ok || got != want {
		t.Errorf("Find = %+v, %t, want %+v", got, ok, want)
	}
	// A lock belongs to an open file, so a second Open in this process stands for a second process.
	if _, err := Open(path); fault.CodeOf(err) != fault.AppDirLocked {
		t.Errorf("second Open: %v, want %s", err, fault.AppDirLocked)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := Find(path); ok {
		t.Error("found a process after Close")
	}
}

func TestALeftAnnouncementIsNotBelieved(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Announce(Up{PID: 7}); err != nil {
		t.Fatal(err)
	}
	if err := d.lock.Close(); err != nil { // what SIGKILL does
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, "up.json")); err != nil {
		t.Fatal(err)
	}
	if up, ok := Find(path); ok {
		t.Errorf("believed %+v of a dead process", up)
	}
}
