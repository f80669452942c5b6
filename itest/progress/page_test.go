package progress

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
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

// page looks at the page of a running job in a real browser: it shows the job, needs nothing from elsewhere, fits the width
// of a phone, can be used by keyboard, and has names for what it shows. WEIR_SCREENSHOTS is a folder for pictures.
func (s *copyScene) page(t *testing.T) {
	chromium := harness.Script(t, "setup-chromium.sh")
	s.recover(t)
	url := s.mesh.Members[0].HTTP
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(60*time.Second))
	browsing, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	browser, closeBrowser := chromedp.NewContext(browsing)
	defer closeBrowser()
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	for i, v := range views {
		ctx, cancel := context.WithTimeout(browser, 60*time.Second)
		p := look(t, ctx, url, v.name, v.width, v.height, v.dark)
		cancel()
		p.judge(t, v.name, v.dark)
		// Rows are set aside behind the first look, so that the calm page is seen and the other.
		if calm := strings.Contains(p.Why, "Nothing holds it up") && p.Letters == 0; calm != (i == 0) || !calm && (!strings.Contains(p.Why, "rows aside") || p.Letters != 1) {
			t.Errorf("%s: why %q, %d sinks with letters", v.name, p.Why, p.Letters)
		}
		if i == 0 {
			s.refuse(t)
		}
		if dir := os.Getenv("WEIR_SCREENSHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, v.name+".png"), p.shot, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// recover has an attempt take over from one whose connection to the source has ended.
func (s *copyScene) recover(t *testing.T) {
	t.Helper()
	before := s.mesh.Status(t, "copy").Fence
	s.source(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'walsender'")
	harness.Await(t, 60*time.Second, "the next attempt", func(context.Context) error {
		if st := s.mesh.Status(t, "copy"); st.Fence == before || st.Phase != "RUNNING" {
			return fmt.Errorf("attempt %d is %s", st.Fence, st.Phase)
		}
		return nil
	})
	s.mesh.CaughtUp(t, "copy")
}

// refuse has a target refuse rows and waits until they are set aside.
func (s *copyScene) refuse(t *testing.T) {
	t.Helper()
	if _, err := s.look.Exec(t.Context(), "ALTER TABLE copy.marks ADD CHECK (id > 0)"); err != nil {
		t.Fatal(err)
	}
	s.source(t, "INSERT INTO marks SELECT -i FROM generate_series(1, 12) i")
	s.mesh.CaughtUp(t, "copy")
}

// sight is what was seen of a page.
type sight struct {
	Phase, Why, Back                                string
	Overflow, Unnamed, Tables, Cells, Bars, Letters int
	Parts                                           []string // of the time of epochs
	Recoveries, Collectors                          string
	Links                                           []string // what is written on the links of the flow
	Marks                                           []string
	Outside, Pale, Levels                           []string
	focused                                         []string // by tab, from the first on
	kept                                            bool     // the focus, while the page is updated
	shot                                            []byte
}

// seen gathers it in the page. Pale is text whose contrast is less than WCAG 2 asks for in AA.
const seen = `(() => {
	const all = (q) => [...document.querySelectorAll(q)], text = (q) => all(q).map((e) => e.textContent).join(" | ");
	const rgb = (c) => (c.match(/[\d.]+/g) || []).map(Number);
	const light = (c) => { const [r, g, b] = rgb(c).map((x) => ((x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if ((rgb(c)[3] ?? 1) > 0) return c; } return "rgb(255,255,255)"; };
	const pale = all("main *, header *").filter((e) => e.offsetParent !== null && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).filter((e) => {
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
		return (a + 0.05) / (b + 0.05) < 4.5;
	}).map((e) => e.tagName + " " + e.className + " " + e.textContent.slice(0, 30));
	return {
		Phase: document.querySelector("#state dd").textContent, Why: document.querySelector("#why").textContent,
		Back: getComputedStyle(document.body).backgroundColor,
		Overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
		Tables: all("#sources tbody tr").length, Cells: all("#sources .grid .done").length, Bars: all("#epochs li").length,
		Parts: [...new Set(all("#epochs rect").map((e) => e.getAttribute("class")))].sort(),
		Recoveries: text("#recoveries td"), Collectors: text("[aria-label='Collectors of reports'] th"), Letters: all("#letters tbody tr").length,
		Links: all("#graph text.small").map((e) => e.textContent), Marks: [...new Set(all("#sources .mark").map((e) => e.textContent))].sort(),
		Outside: performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin) && !n.startsWith("data:")),
		Unnamed: all("table, svg[role=img], section, input, [role=region], progress").filter((e) =>
			!(e.caption || e.ariaLabel || e.getAttribute("aria-labelledby") || (e.labels && e.labels.length) || e.closest("[role=region]"))).length,
		Pale: [...new Set(pale)], Levels: all("h1, h2, h3").filter((e) => e.offsetParent !== null).map((e) => e.tagName),
	};
})()`

func (p *sight) judge(t *testing.T, name string, dark bool) {
	t.Helper()
	if p.Phase != "RUNNING" {
		t.Errorf("%s: phase %q", name, p.Phase)
	}
	if p.Tables < 5 || p.Cells < 25 || p.Bars < 8 || p.Collectors == "" || !strings.Contains(p.Recoveries, "WEIR-PG-024") {
		t.Errorf("%s: %d rows of tables, %d cells of splits, %d epochs, recoveries %q, collectors %q", name, p.Tables, p.Cells, p.Bars, p.Recoveries, p.Collectors)
	}
	if !slices.Equal(p.Parts, []string{"align", "rest", "snapshot", "stage"}) {
		t.Errorf("%s: epochs are split into %v", name, p.Parts)
	}
	for _, count := range []string{" rows/s", " splits", "epoch ", " rows"} {
		if !slices.ContainsFunc(p.Links, func(text string) bool { return strings.Contains(text, count) }) {
			t.Errorf("%s: no%s in the flow: %q", name, count, p.Links)
		}
	}
	if !slices.Contains(p.Marks, "=") || !slices.Contains(p.Marks, "~") {
		t.Errorf("%s: marks of accuracy %q", name, p.Marks)
	}
	if p.Overflow > 0 {
		t.Errorf("%s: the page is %d pixels wider than its window", name, p.Overflow)
	}
	if len(p.Outside) > 0 {
		t.Errorf("%s: asked elsewhere for %v", name, p.Outside)
	}
	if p.Unnamed > 0 || len(p.Pale) > 0 {
		t.Errorf("%s: %d parts have no name for who cannot see them; hard to read are %q", name, p.Unnamed, p.Pale)
	}
	for i, level := range p.Levels {
		if i == 0 && level != "H1" || i > 0 && level[1] > p.Levels[i-1][1]+1 {
			t.Errorf("%s: headings %v", name, p.Levels)
		}
	}
	if !slices.Equal(p.focused[:3], []string{"skip", "A", "graph"}) || !slices.Contains(p.focused, "SUMMARY") || !slices.Contains(p.focused, "Tables") || !p.kept {
		t.Errorf("%s: tab goes through %q; kept while the page changes: %t", name, p.focused, p.kept)
	}
	var r, g, b int
	if _, err := fmt.Sscanf(p.Back, "rgb(%d, %d, %d)", &r, &g, &b); err != nil || (r+g+b < 300) != dark {
		t.Errorf("%s: the background is %s", name, p.Back)
	}
	if _, err := png.DecodeConfig(bytes.NewReader(p.shot)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// look opens the list, goes to the job by keyboard alone, through all of it by tab, and says what is there.
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
	// Rates are there with the second update.
	there(`document.querySelectorAll("#sources tbody tr").length > 4 && [...document.querySelectorAll("#graph text")].some((e) => e.textContent.endsWith("rows/s"))`)
	s, err := chromedp.Run(ctx, chromedp.Evaluate[sight](seen))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if s.shot, err = chromedp.Run(ctx, chromedp.FullScreenshot(100)); err != nil {
		t.Fatal(err)
	}
	focus := func() string {
		at, err := chromedp.Run(ctx, chromedp.Evaluate[string](`((e) => e.className === "skip" ? "skip" : e.id || e.ariaLabel || e.tagName)(document.activeElement)`))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return at
	}
	there(`(document.activeElement.blur(), document.body.setAttribute("tabindex", -1), document.body.focus(), document.body.removeAttribute("tabindex"), true)`)
	for range 20 {
		steps(chromedp.KeyEvent("\t"))
		s.focused = append(s.focused, focus())
		if s.focused[len(s.focused)-1] == "Tables" {
			break
		}
	}
	// The rows of the table that has the focus change twice.
	there(`window.was = [], true`)
	there(`(() => { const now = document.querySelector("[aria-label=Readers]").textContent; if (!was.includes(now)) was.push(now); return was.length > 2; })()`)
	s.kept = focus() == "Tables"
	return s
}
