"use strict";
// The page of the progress service. It draws what the service says and computes no state of its own. All text goes through
// textContent; nothing is loaded from elsewhere.

const $ = (id) => document.getElementById(id);
let token = sessionStorage.getItem("weir-token") || "";
let stop = new AbortController();
let previous = null; // the rows of before, for rates
let graph = null;

// el makes an element: a name, attributes, children or text.
function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) if (v !== undefined) e.setAttribute(k, v);
  e.append(...children.filter((c) => c !== undefined).map((c) => (c instanceof Node ? c : String(c))));
  return e;
}

// set replaces the children only when the text differs, so that a reader of the screen is told only what is new.
function set(target, ...children) {
  const fresh = el("div", {}, ...children);
  if (target.innerHTML !== fresh.innerHTML) target.replaceChildren(...fresh.childNodes);
}

const number = (n) => n.toLocaleString("en");
const seconds = (ns) => (ns / 1e9).toFixed(ns < 10e9 ? 1 : 0) + " s";
const marks = { EXACT: "=", BEST_EFFORT: "~", UNSUPPORTED: "n/a", UNAVAILABLE: "?" };
const words = { EXACT: "exact", BEST_EFFORT: "about", UNSUPPORTED: "this source cannot say", UNAVAILABLE: "not known now" };

// value shows a value with the mark of its accuracy.
function value(v, form = (x) => (typeof x === "number" ? number(x) : x)) {
  const accuracy = v ? v.accuracy : "UNAVAILABLE";
  const has = v && v.value !== undefined;
  return el("span", { title: words[accuracy] }, has ? form(v.value) : "", has ? " " : "",
    el("span", { class: "mark", "aria-hidden": "true" }, marks[accuracy]), el("span", { class: "hidden" }, " (" + words[accuracy] + ")"));
}

const position = (p) => Object.entries(p.fields).map(([k, v]) => (k === "lsn" || k === "binlog" || k === "gtids" ? v : k + " " + v)).join(", ");
const bytes = (n) => (n < 1 << 20 ? Math.round(n / 1024) + " KiB" : n < 1 << 30 ? (n / (1 << 20)).toFixed(1) + " MiB" : (n / (1 << 30)).toFixed(1) + " GiB");
const colour = (word) =>
  ({ RUNNING: "good", HEALTHY: "good", INCREMENTAL: "good", FINISHED: "good", FAILED: "bad", CONNECTOR_REPORTED_STALLED: "bad", STALE_REPORT: "warn", NO_PROGRESS_OBSERVED: "warn", UNKNOWN: "warn", STARTING: "warn" })[word] || "busy";
const state = (word) => el("span", { class: colour(word) }, word);

function showJobs(list) {
  set($("job-rows"), ...list.jobs.map((j) => el("tr", {},
    el("th", { scope: "row" }, el("a", { href: "#/" + j.job }, j.job)), el("td", {}, state(j.phase)),
    el("td", {}, j.sources.map((s, i) => s + " " + j.lifecycles[i]).join(", ")),
    el("td", {}, number(j.durable)), el("td", {}, number(j.committed)), el("td", { class: "text" }, j.why.join("; ")))));
  if (list.jobs.length === 0) set($("job-rows"), el("tr", {}, el("td", { colspan: 6 }, "No jobs. weir job submit FILE makes one.")));
}

function showJob(j) {
  const notes = (j.findings || []).filter((f) => f.note).map((f) => f.text);
  $("why-box").className = j.why.length ? "waits" : "";
  set($("why"), ...(j.why.length ? j.why : ["Nothing holds it up.", ...notes]).map((w) => el("li", {}, w)));
  const e = j.epoch;
  const facts = [
    ["Phase", state(j.phase)], ["Attempt", j.fence], ["Durable epoch", e.durable], ["Committed epoch", e.committed],
    ["In flight", e.inFlight ? e.inFlight + (e.waitsFor ? ", waits for " + e.waitsFor.slice(0, 3).join(", ") + (e.waitsFor.length > 3 ? " …" : "") : "") : "none"],
    ["Guarantee", j.guarantee.effective + (j.guarantee.why ? ": " + j.guarantee.why : "")], ["Recent recoveries", e.restarts || 0], ["Last reason", j.reason.code],
  ];
  set($("state"), ...facts.map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v))));
  set($("sinks"), ...j.sinks.map((k) => el("tr", {}, el("th", { scope: "row" }, k.name), el("td", {}, k.type), el("td", {}, k.mode),
    el("td", { class: "text" }, k.waiting ? el("span", { class: "bad" }, "takes no commits since " + k.waiting.since) : "takes commits"),
    el("td", {}, k.dead ? number(k.dead) + ": weir dlq list " + j.job : "none"))));
  set($("sources"), ...j.sources.flatMap(source));
  showEpochs(j.epochs.epochs);
  drawGraph(j);
}

function source(s) {
  const h = s.health || { state: "UNKNOWN" };
  const out = [el("h3", {}, s.name + " (" + s.type + ") ", state(s.mixed ? "MIXED" : s.lifecycle), " ", state(h.state))];
  if (h.reason) out.push(el("p", { class: "faint" }, h.reason));
  if (s.recovery && s.recovery.epoch) out.push(el("p", {}, "Restored from epoch " + s.recovery.epoch + ": " + s.recovery.state));
  const e = s.enumerator;
  if (e && e.assigned.value !== undefined && e.assignment !== "NOT_APPLICABLE") {
    const line = el("p", {}, "Splits: ", value(e.completed), " read, ", value(e.running), " at readers, ", value(e.preparedUnsent), " prepared, ",
      value(e.tablesNotChunked), " tables not cut yet. ");
    const total = s.summary && s.summary.total;
    // A bar only where the total is known.
    if (total && total.value) line.append(el("progress", { max: total.value, value: e.completed.value || 0, "aria-label": "splits read" }),
      " " + Math.floor((100 * (e.completed.value || 0)) / total.value) + "% of " + number(total.value));
    out.push(line);
    const cells = (e.active || []).map((a) => el("li", { class: "running", title: a.table + " " + a.id }));
    if (cells.length) out.push(el("p", { class: "hidden" }, cells.length + " splits are at readers"), el("ul", { class: "grid", "aria-hidden": "true" }, ...cells, ...(e.activeTruncated ? [el("span", {}, "…")] : [])));
  }
  const summary = s.summary || { tasks: 0, fresh: 0, stale: 0, missing: 0 };
  out.push(table("Readers: " + summary.fresh + " of " + summary.tasks + " report, " + summary.stale + " old, " + summary.missing + " missing",
    ["Reader", "Node", "Phase", "Rows", "Split", "Emitted up to", "Durable", "Committed", "Head", "Behind", "Log kept", "Report"],
    s.readers.map((r) => [r.subtask, r.node, r.copies ? (r.lifecycle === "SNAPSHOT" ? state("SNAPSHOT") : "copies, idle") : state(r.lifecycle), value(r.rows),
      el("span", {}, value(r.activeSplit), r.activeTable ? " " + r.activeTable : ""), value(r.consumed, position), value(r.durable, position), value(r.completed, position),
      value(r.head, (x) => position(x.position)), r.behind ? value(r.behind.value, (n) => number(n) + " " + (r.behind.unit || "")) : "", kept(r),
      el("span", { class: r.stale ? "warn" : "" }, r.stale ? seconds(r.age) + " old" : "fresh")])));
  out.push(table("Tables" + (s.tablesTruncated ? " (not all)" : ""), ["Table", "Phase", "Rows of this attempt", "Rows copied", "Splits", "Note"],
    s.tables.map((t) => [t.name, state(t.lifecycle), value(t.rows), value(t.copied), splits(t.splits), t.note || ""])));
  return out;
}

// splits are the parts of a table's copy: a cell for each, or for so many of them that sixty cells are enough, and the same in words.
function splits(p) {
  if (!p) return "";
  const all = p.completed + p.running + p.prepared, each = Math.max(1, Math.ceil(all / 60)), cells = [];
  for (const [kind, n] of [["done", p.completed], ["running", p.running], ["waiting", p.prepared]])
    for (let i = 0; i < Math.ceil(n / each); i++) cells.push(el("li", { class: kind }));
  const text = number(p.completed) + " read, " + number(p.running) + " being read, " + number(p.prepared) + " waiting" + (p.cut ? "" : ", more to be cut");
  return el("span", { title: each > 1 ? "a cell is about " + each + " splits" : "" },
    el("ul", { class: "grid", "aria-hidden": "true" }, ...cells, ...(p.cut ? [] : [el("span", {}, "…")])), text);
}

// kept is how much log the source keeps for a reader, and for how long; what is foreseen is never exact.
function kept(r) {
  const k = r.retention, f = r.forecast || {}, out = [value(r.retainedBytes, bytes)];
  if (k && k.bytes) out.push(" of " + bytes(k.bytes));
  if (k) out.push(f.in && f.in.value !== undefined ? ", lost in ~" + seconds(f.in.value) + (f.atLeast ? " at least, if nothing more is read" : "")
    : { UNBOUNDED: ", kept without a bound", NOT_FORESEEN: ", not lost soon" }[f.outlook] || ", forecast unavailable");
  return el("span", { class: f.in && f.in.value < 864e11 ? "warn" : "" }, ...out);
}

function table(caption, heads, rows) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, el("table", {}, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map((c, i) => (i ? el("td", {}, c) : el("th", { scope: "row" }, c))))))));
}

function showEpochs(list) {
  const longest = Math.max(1, ...list.map((e) => e.took || 0));
  set($("epochs"), ...list.slice(0, 80).map((e) => {
    const phases = Object.entries(e.phases || {}).map(([k, v]) => k + " " + seconds(v)).join(", ");
    const text = "epoch " + e.epoch + " " + e.state.replace("_", " ") + (e.took ? ", took " + seconds(e.took) : "") + (e.rows ? ", " + number(e.rows) + " rows" : "") + (phases ? " (" + phases + ")" : "");
    const li = el("li", { class: e.state, title: text }, el("span", { class: "hidden" }, text));
    if (e.took) li.style.height = Math.max(4, Math.round((70 * e.took) / longest)) + "px";
    return li;
  }));
  const skipped = list.filter((e) => e.state === "skipped").length;
  set($("legend"), "Newest first; height is the time an epoch took, the longest " + seconds(longest) + ". " + (skipped ? skipped + " were given up (hatched)." : "None was given up."));
}

const svgName = "http://www.w3.org/2000/svg";
function svg(name, attributes, text) {
  const e = document.createElementNS(svgName, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

// drawGraph draws stages in columns by role, with live counts on the links.
function drawGraph(j) {
  if (!graph || graph.vertices.length === 0) return set($("graph"), "Not placed yet.");
  const roles = ["enumerator", "reader", "transform", "writer", "committer"].filter((r) => graph.vertices.some((v) => v.role === r));
  const columns = roles.map((r) => graph.vertices.filter((v) => v.role === r));
  const wide = 150, gap = 74, high = 50, space = 22;
  const tall = Math.max(...columns.map((c) => c.length)) * (high + space);
  const picture = svg("svg", { width: columns.length * (wide + gap) - gap + 4, height: tall + 4, role: "img", "aria-labelledby": "picture-title" });
  const now = Date.parse(j.at), rows = {};
  for (const s of j.sources) if (s.summary && s.summary.rows.value !== undefined) rows[s.name] = s.summary.rows.value;
  const rate = (name) => {
    if (!previous || previous.fence !== j.fence || previous.rows[name] === undefined || rows[name] === undefined || now <= previous.at) return "";
    return number(Math.max(0, Math.round(((rows[name] - previous.rows[name]) * 1000) / (now - previous.at)))) + "/s";
  };
  const blocked = new Set((j.findings || []).filter((f) => !f.note).map((f) => f.about.replace(/-\d+$/, "")));
  const at = {};
  columns.forEach((c, x) => c.forEach((v, y) => (at[v.id] = { x: x * (wide + gap) + 2, y: y * (high + space) + 2 })));
  const said = graph.vertices.map((v) => v.name + " " + v.role).join(", ");
  picture.append(svg("title", { id: "picture-title" }, "Flow: " + said));
  for (const l of graph.edges) {
    const a = at[l.from], b = at[l.to];
    if (!a || !b) continue;
    const x1 = a.x + wide, y1 = a.y + high / 2, x2 = b.x, y2 = b.y + high / 2;
    picture.append(svg("path", { d: `M${x1} ${y1} C${x1 + gap / 2} ${y1} ${x2 - gap / 2} ${y2} ${x2} ${y2}` }));
    const text = rate(l.from);
    if (text) picture.append(svg("text", { x: x1 + 4, y: y1 - 5, class: "small" }, text));
  }
  for (const v of graph.vertices) {
    const p = at[v.id];
    picture.append(svg("rect", { x: p.x, y: p.y, width: wide, height: high, rx: 5, class: blocked.has(v.id) || (v.role === "committer" && blocked.has(v.name)) ? "bad" : "" }),
      svg("text", { x: p.x + 10, y: p.y + 21 }, v.name), svg("text", { x: p.x + 10, y: p.y + 39, class: "small" }, v.role + (v.parallelism > 1 ? " × " + v.parallelism : "")));
    if (v.role === "reader" && rows[v.name] !== undefined) picture.append(svg("text", { x: p.x + wide - 8, y: p.y + 39, class: "small", "text-anchor": "end" }, number(rows[v.name]) + " rows"));
  }
  $("graph").replaceChildren(picture);
  if (!previous || previous.fence !== j.fence || now - previous.at > 3000) previous = { at: now, rows, fence: j.fence };
}

function notice(n) {
  $("events").prepend(el("li", {}, n.at.slice(11, 19) + " " + n.job + " " + n.kind + " " + (n.phase || "") + " " + n.reason.code + " " + (n.reason.text || "")));
  while ($("events").children.length > 100) $("events").lastChild.remove();
}

const headers = () => (token ? { Authorization: "Bearer " + token } : {});

// follow reads a stream of events until it ends. EventSource cannot send a token.
async function follow(url, signal, handle) {
  const answer = await fetch(url, { headers: headers(), signal });
  if (answer.status === 401) return ask();
  if (!answer.ok) throw new Error((await answer.json()).title || answer.statusText);
  $("link").textContent = "live";
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value: part, done } = await reader.read();
    if (done) return undefined;
    rest += part;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const e of events) {
      const kind = /^event: (.*)$/m.exec(e), data = /^data: (.*)$/m.exec(e);
      if (kind && data) handle(kind[1], JSON.parse(data[1]));
    }
  }
}

function ask() {
  stop.abort();
  $("token").hidden = false;
  $("jobs").hidden = $("job").hidden = true;
  $("link").textContent = "a token is needed";
  $("secret").focus();
}

$("token").addEventListener("submit", (e) => {
  e.preventDefault();
  token = $("secret").value;
  sessionStorage.setItem("weir-token", token);
  $("token").hidden = true;
  start();
});

async function start() {
  stop.abort();
  stop = new AbortController();
  const signal = stop.signal;
  const name = decodeURIComponent(location.hash.replace(/^#\/?/, ""));
  if (name === "main") return;
  previous = graph = null;
  $("where").textContent = name;
  document.title = name ? name + " · Weir" : "Weir";
  $("jobs").hidden = name !== "";
  $("job").hidden = name === "";
  $("events").replaceChildren();
  const base = "/v1" + (name ? "/jobs/" + encodeURIComponent(name) : "");
  let attempt = 0;
  while (!signal.aborted) {
    try {
      await follow(base + "/events", signal, async (kind, data) => {
        if (kind === "jobs") showJobs(data);
        if (kind === "notice") notice(data);
        if (kind === "gone") $("link").textContent = "the job is gone";
        if (kind !== "job") return;
        if (attempt !== data.fence || graph === null || graph.vertices.length === 0) {
          attempt = data.fence;
          const answer = await fetch(base + "/graph", { headers: headers(), signal });
          if (answer.ok) graph = await answer.json();
        }
        if (!signal.aborted) showJob(data);
      });
    } catch (e) {
      if (signal.aborted) return;
      $("link").textContent = "not connected: " + e.message;
    }
    await new Promise((r) => setTimeout(r, 1000));
  }
}

window.addEventListener("hashchange", start);
start();
