package harness

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// ObjectStore is a private S3 server, versitygw, as a process of its own. What it was told is in files and survives Kill and Start.
type ObjectStore struct {
	*Process

	// URL is the endpoint for clients that name the bucket in the path; the same over all restarts.
	URL string
	// Region, AccessKey and SecretKey are what requests are signed with.
	Region, AccessKey, SecretKey string
}

// StartObjectStore runs a server with one bucket until the test ends.
func StartObjectStore(tb testing.TB, bucket string) *ObjectStore {
	tb.Helper()
	dir := tb.TempDir()
	root, meta := filepath.Join(dir, "buckets"), filepath.Join(dir, "meta")
	for _, d := range []string{filepath.Join(root, bucket), meta} { // a folder is a bucket
		if err := os.MkdirAll(d, 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	port, err := FreePort(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	// us-east-1 is what clients sign for that are not told a region.
	s := &ObjectStore{
		URL: "http://127.0.0.1:" + strconv.Itoa(port), Region: "us-east-1", AccessKey: rand.Text(), SecretKey: rand.Text(),
	}
	s.Process = StartProcess(tb, ProcessConfig{
		Name: "versitygw", Path: Script(tb, "tools.sh", "versitygw"), Dir: dir,
		Args: []string{
			"--port", fmt.Sprintf("127.0.0.1:%d", port), "--region", s.Region, "--health", "/health", "--quiet",
			// Not every file system has extended attributes.
			"posix", "--sidecar", meta, root,
		},
		Env:   []string{"ROOT_ACCESS_KEY_ID=" + s.AccessKey, "ROOT_SECRET_ACCESS_KEY=" + s.SecretKey},
		Ready: HTTPReady(s.URL + "/health"),
	})
	return s
}
