package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weir.dev/weir/itest/harness"
)

// settle bounds waits for something that should be at once.
const settle = 30 * time.Second

// recvlogical reads a slot's log to the given end with PostgreSQL's own client, into nothing, and returns how long that
// took from the start of the server's session to the end of the client.
func (s *stand) recvlogical(slot, end string) time.Duration {
	s.Helper()
	dir := s.TempDir()
	p, err := harness.RunProcess(s.Context(), harness.ProcessConfig{
		Name: "pg_recvlogical", Path: s.source.Bin("pg_recvlogical"), Dir: dir,
		Args: []string{
			"--dbname", fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=postgres", s.source.Port, s.source.Admin.Name),
			"--slot", slot, "--start", "--endpos", end, "--no-loop", "--file", "/dev/null", "--fsync-interval", "0",
			"--option", "proto_version=1", "--option", "publication_names=bench", "--option", "binary=true",
		},
		Env: []string{"PGPASSWORD=" + s.source.Admin.Password, "PGAPPNAME=bench-baseline"},
	})
	if err != nil {
		s.Fatal(err)
	}
	defer p.Kill()
	began := s.sessionStart(slot, p.Done())
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
	defer cancel()
	code, err := p.Wait(ctx)
	ended := time.Now()
	if err != nil || code != 0 {
		s.Fatalf("%s: exit %d, %v\n%s", filepath.Base(s.source.Bin("pg_recvlogical")), code, err, p.LogTail(2<<10))
	}
	return ended.Sub(began)
}

// sessionStart waits until the server begins to send a slot's log, and returns when that was. Its own log says so, also when the session
// is over by the time that somebody asks. The server runs on this machine, so its clock is ours.
func (s *stand) sessionStart(slot string, ended <-chan struct{}) (began time.Time) {
	s.Helper()
	harness.Await(s, settle, "the replication session", func(context.Context) error {
		over := false
		select {
		case <-ended:
			over = true
		default:
		}
		text, err := os.ReadFile(s.source.LogPath())
		if err != nil {
			return err
		}
		before, _, found := bytes.Cut(text, []byte(`LOG:  starting logical decoding for slot "`+slot+`"`))
		if !found && over {
			s.Fatal("the process ended without a session")
		}
		if !found {
			return errors.New("no session has begun")
		}
		const stamp = "2006-01-02 15:04:05.000 MST"
		line := string(before[bytes.LastIndexByte(before, '\n')+1:])
		began, err = time.Parse(stamp, line[:min(len(stamp), len(line))])
		return err
	})
	return began
}
