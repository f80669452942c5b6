package progress

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"weir.dev/weir/itest/harness"
)

// views are the sizes and colours in which the page is looked at.
var views = []struct {
	name          string
	width, height int64
	dark          bool
}{
	{"desk-light", 1280, 800, false}, {"desk-dark", 1280, 800, true}, {"phone-light", 390, 844, false}, {"phone-dark", 390, 844, true},
}

// TestPage looks at the page of a running job in a real browser: it shows the job, needs nothing from elsewhere, fits the
// width of a phone, can be used by keyboard, and has names for what it shows. WEIR_SCREENSHOTS is a folder for pictures.
func TestPage(t *testing.T) {
	t.Parallel()
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "setup-chromium.sh")).Output()
	if err != nil {
		t.Fatalf("scripts/setup-chromium.sh: %v", err)
	}
	s := newCopy(t)
	s.mesh.CaughtUp(t, "copy")
	url := s.mesh.Members[0].HTTP
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(strings.TrimSpace(string(out))), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(60*time.Second))
	browsing, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	browser, closeBrowser := chromedp.NewContext(browsing)
	defer closeBrowser()
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		ctx, cancel := context.WithTimeout(browser, 60*time.Second)
		p := look(t, ctx, url, v.name, v.width, v.height, v.dark)
		cancel()
		if p.Phase != "RUNNING" || !strings.Contains(p.Why, "Nothing holds it up") || p.Rows < 3 {
			t.Errorf("%s: phase %q, why %q, %d rows", v.name, p.Phase, p.Why, p.Rows)
		}
		if p.Overflow > 0 {
			t.Errorf("%s: the page is %d pixels wider than its window", v.name, p.Overflow)
		}
		if len(p.Outside) > 0 {
			t.Errorf("%s: asked elsewhere for %v", v.name, p.Outside)
		}
		if p.Unnamed > 0 {
			t.Errorf("%s: %d parts have no name for who cannot see them", v.name, p.Unnamed)
		}
		if p.focused == "BODY" {
			t.Errorf("%s: tab leads nowhere", v.name)
		}
		var r, g, b int
		if _, err := fmt.Sscanf(p.Back, "rgb(%d, %d, %d)", &r, &g, &b); err != nil || (r+g+b < 300) != v.dark {
			t.Errorf("%s: the background is %s", v.name, p.Back)
		}
		if _, err := png.DecodeConfig(bytes.NewReader(p.shot)); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		if dir := os.Getenv("WEIR_SCREENSHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, v.name+".png"), p.shot, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// sight is what was seen of a page.
type sight struct {
	Phase, Why, Back        string
	Overflow, Unnamed, Rows int
	Outside                 []string
	focused                 string
	shot                    []byte
}

// seen gathers it in the page.
const seen = `({
	Phase: document.querySelector("#state dd").textContent, Why: document.querySelector("#why").textContent,
	Back: getComputedStyle(document.body).backgroundColor,
	Overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
	Rows: document.querySelectorAll("#sources tbody tr").length,
	Outside: performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin) && !n.startsWith("data:")),
	Unnamed: [...document.querySelectorAll("table, svg[role=img], section, input, [role=region]")].filter((e) =>
		!(e.caption || e.ariaLabel || e.getAttribute("aria-labelledby") || (e.labels && e.labels.length) || e.closest("[role=region]"))).length,
})`

// look opens the list, goes to the job by keyboard alone, and says what is there.
func look(t *testing.T, ctx context.Context, url, name string, width, height int64, dark bool) sight {
	t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	steps := func(all ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, all...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	there := func(expression string) {
		t.Helper()
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression)); err != nil {
			t.Fatalf("%s: %s: %v", name, expression, err)
		}
	}
	steps(
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return err
		}),
		chromedp.EmulateViewport(width, height),
		chromedp.Navigate(url+"/?"+name),
	)
	there(`document.querySelector("#job-rows a") !== null && (document.querySelector("#job-rows a").focus(), true)`)
	steps(chromedp.KeyEvent("\r"))
	there(`document.querySelector("#graph svg rect") !== null && document.querySelectorAll("#sources tbody tr").length > 0`)
	s, err := chromedp.Run(ctx, chromedp.Evaluate[sight](seen))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	there(`(document.querySelector("h1 a").focus(), true)`)
	steps(chromedp.KeyEvent("\t"))
	if s.focused, err = chromedp.Run(ctx, chromedp.Evaluate[string](`document.activeElement.id || document.activeElement.tagName`)); err != nil {
		t.Fatal(err)
	}
	if s.shot, err = chromedp.Run(ctx, chromedp.FullScreenshot(100)); err != nil {
		t.Fatal(err)
	}
	return s
}
