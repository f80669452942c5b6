package compose

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// madeOf is the label of an image of ours that says what it was made of.
const madeOf = "dev.weir.made-of"

// standIns makes the images of others under the names that compose.yml has, where they are not there from the last time.
func (e *engine) standIns(t *testing.T) {
	t.Helper()
	servers, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	servers = filepath.Join(servers, "weir", "servers")
	mysql := os.Getenv("WEIR_MYSQL_ROOT")
	if mysql == "" {
		mysql = filepath.Join(servers, "mysql-root")
	}
	e.standIn(t, "mysql:8.4", "mysql", mysql)
	e.standIn(t, "postgres:17", "postgres", filepath.Join(servers, "postgres17-root"))

	nats := filepath.Join(e.dir, "nats")
	if err := os.CopyFS(nats, os.DirFS("testdata/nats")); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(nats, "nats-server"), "github.com/nats-io/nats-server/v2")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build NATS: %v\n%s", err, out)
	}
	e.must(t, nil, "build", "--quiet", "--tag", "nats:2.15", nats)
}

// standIn makes an image of a root file system and of the recipe in testdata.
func (e *engine) standIn(t *testing.T, image, name, root string) {
	t.Helper()
	recipe := filepath.Join("testdata", name)
	want := fingerprint(t, root, recipe)
	// An image that is not there has no label.
	have, err := e.docker(t.Context(), nil, "image", "inspect", "--format", `{{index .Config.Labels "`+madeOf+`"}}`, image).Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(have)) == want {
		return
	}
	tar := exec.CommandContext(t.Context(), "tar", "--create", "--numeric-owner", "--directory", root,
		"--exclude=./proc/*", "--exclude=./sys/*", "--exclude=./dev/*", "--exclude=./tmp/*", "--exclude=./var/cache/*",
		"--exclude=./var/lib/apt/*", "--exclude=./usr/share/doc/*", "--exclude=./usr/share/locale/*", ".")
	load := e.docker(t.Context(), nil, "import", "-", "weir-root/"+name)
	var said bytes.Buffer
	tar.Stderr, load.Stderr = &said, &said
	if load.Stdin, err = tar.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tar.Start(), load.Run(), tar.Wait()); err != nil {
		t.Fatalf("make the root of %s: %v\n%s", image, err, said.String())
	}
	e.must(t, nil, "build", "--quiet", "--tag", image, "--label", madeOf+"="+want, filepath.Join(e.root, "itest/compose", recipe))
}

// fingerprint tells one root and recipe from another: by the packages in it, and by the text of the recipe.
func fingerprint(t *testing.T, root, recipe string) string {
	t.Helper()
	hash := sha256.New()
	files, err := filepath.Glob(filepath.Join(recipe, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, filepath.Join(root, "var/lib/dpkg/status")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = hash.Write(text) // never fails
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}
