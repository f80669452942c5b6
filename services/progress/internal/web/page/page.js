"use strict";
// The page of the progress service. It shows what the service says and computes no state of its own; parts.js makes the
// elements, draw.js the pictures.

let token = sessionStorage.getItem("weir-token") || "";
let stop = new AbortController();
let previous = null; // the rows of before and the rates since, for the links of the flow
let graph = null;

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
  const d = e.delay;
  if (d) facts.push(["Delay of epoch " + d.epoch, el("span", {}, "sources ", value(d.snapshot, seconds), ", bus ", value(d.bus, seconds), ", writers ", value(d.stage, seconds), ", commit ", value(d.commit, seconds))]);
  set($("state"), ...facts.map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v))));
  set($("sinks"), ...j.sinks.map((k) => el("tr", {}, el("th", { scope: "row" }, k.name), el("td", {}, k.type), el("td", {}, k.mode),
    el("td", { class: "text" }, k.waiting ? el("span", { class: "bad" }, "takes no commits since " + k.waiting.since) : "takes commits"),
    el("td", {}, k.committed ? number(k.committed) : "not known"))));
  letters(j);
  set($("sources"), ...j.sources.flatMap(source));
  showEpochs(j.epochs.epochs);
  showRecoveries(j.recoveries || []);
  drawGraph(j);
}

// letters are the rows that sinks have set aside.
function letters(j) {
  const lately = Object.fromEntries((j.findings || []).filter((f) => f.kind === "letters_fill").map((f) => [f.about, f.text]));
  const kept = j.sinks.filter((k) => k.dead);
  set($("letters"), ...(kept.length ? [table("Rows that a target refused", ["Sink", "There", "Lately", "To see and to repeat them"],
    kept.map((k) => [k.name, number(k.dead), lately[k.name] ? el("span", { class: "warn text" }, lately[k.name]) : "none within a minute", el("code", {}, "weir dlq list " + j.job)]))]
    : [el("p", {}, "None.")]));
}

// collectors are the ways on which reports come.
function collectors(s) {
  const m = s.summary || { tasks: 0, fresh: 0, stale: 0, missing: 0 }, nodes = [...new Set(s.readers.map((r) => r.node))];
  const oldest = Math.max(0, ...s.readers.map((r) => r.age || 0)), age = s.enumeratorAge || 0, old = 5e9;
  return table("Collectors of reports", ["From", "Nodes", "Fresh", "Old", "Missing", "Age of the oldest"], [
    ["readers", nodes.join(", "), m.fresh + " of " + m.tasks, m.stale, m.missing, s.readers.length ? seconds(oldest) : ""],
    ["enumerator", "", s.enumerator && age <= old ? "1 of 1" : "0 of 1", s.enumerator && age > old ? 1 : 0, s.enumerator ? 0 : 1, s.enumerator ? seconds(age) : ""],
  ]);
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
  out.push(table("Readers",
    ["Reader", "Node", "Report", "Phase", "Rows", "Split", "Emitted up to", "Durable", "Committed", "Head", "Behind", "Round trip", "Log kept"],
    s.readers.map((r) => [r.subtask, r.node, el("span", { class: r.stale ? "warn" : "" }, r.stale ? seconds(r.age) + " old" : "fresh"), r.copies ? (r.lifecycle === "SNAPSHOT" ? state("SNAPSHOT") : "copies, idle") : state(r.lifecycle), value(r.rows),
      el("span", {}, value(r.activeSplit), r.activeTable ? " " + r.activeTable : ""), value(r.consumed, position), value(r.durable, position), value(r.completed, position),
      value(r.head, (x) => position(x.position)), r.behind ? value(r.behind.value, (n) => number(n) + " " + (r.behind.unit || "")) : "",
      r.roundTrip ? value(r.roundTrip, seconds) : "", kept(r)])));
  out.push(table("Tables" + (s.tablesTruncated ? " (not all)" : ""), ["Table", "Phase", "Rows of this attempt", "Rows copied", "Splits", "Note"],
    s.tables.map((t) => [t.name, state(t.lifecycle), value(t.rows), copied(t), splits(t.splits), t.note || ""])));
  out.push(collectors(s));
  return out;
}

// copied is how many rows of a table the present copy has read, and how fast while it reads.
function copied(t) {
  if (!t.rate || t.rate.value === undefined) return value(t.copied);
  return el("span", {}, value(t.copied), ", ", value(t.rate), " rows/s");
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

window.addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  start();
  $("main").focus({ preventScroll: true }); // what is read on is the new content
});
start();
