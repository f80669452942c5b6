"use strict";
// The pictures of a job: its flow and its epochs, and its recoveries.

// phases are the parts of an epoch's time, each the longest of any subtask.
const phases = { snapshot: "sources cut their state", align: "writers wait for every barrier", stage: "writers store rows" };

function phasesOf(e) {
  const all = Object.entries(e.phases || {}).filter(([k]) => phases[k]).sort(([a], [b]) => Object.keys(phases).indexOf(a) - Object.keys(phases).indexOf(b));
  const sum = all.reduce((n, [, v]) => n + v, 0), most = Math.max(sum, e.took || 0, 1);
  // Subtasks work side by side: the longest of each phase can be more than the whole took, then they are shown as parts of it.
  return [...all.map(([k, v]) => [k, v / most, v]), ["rest", (most - sum) / most, most - sum]];
}

function showEpochs(list) {
  const tall = 70, longest = Math.max(1, ...list.map((e) => e.took || 0));
  set($("epochs"), ...list.slice(0, 80).map((e) => {
    const parts = Object.entries(e.phases || {}).map(([k, v]) => k + " " + seconds(v)).join(", ");
    const text = "epoch " + e.epoch + " " + e.state.replace("_", " ") + (e.took ? ", took " + seconds(e.took) : "") + (e.rows ? ", " + number(e.rows) + " rows" : "") + (parts ? " (" + parts + ")" : "");
    const bar = svg("svg", { width: 12, height: tall, "aria-hidden": "true" });
    let y = tall;
    if (e.took) for (const [k, part] of phasesOf(e)) {
      const h = part * Math.max(4, (tall * e.took) / longest);
      y -= h;
      bar.append(svg("rect", { x: 0, y: y.toFixed(1), width: 12, height: h.toFixed(1), class: k }));
    }
    return el("li", { class: e.state, title: text }, bar, el("span", { class: "hidden" }, text));
  }));
  const skipped = list.filter((e) => e.state === "skipped").length;
  set($("legend"), "Newest first. Height is the time an epoch took, the longest " + seconds(longest) + ": ",
    ...Object.entries(phases).flatMap(([k, v]) => [el("span", { class: "swatch " + k, "aria-hidden": "true" }), v + ", "]),
    el("span", { class: "swatch rest", "aria-hidden": "true" }), "messages between them. The line below is green when it is committed, blue when it is durable. ",
    skipped ? skipped + (skipped === 1 ? " was" : " were") + " given up (hatched)." : "None was given up.");
  set($("epoch-table"), table("The newest epochs", ["Epoch", "State", "Attempt", "Took", ...Object.keys(phases), "Rows"],
    list.slice(0, 20).map((e) => [e.epoch, e.state.replace("_", " "), e.fence || "", e.took ? seconds(e.took) : "",
      ...Object.keys(phases).map((k) => ((e.phases || {})[k] === undefined ? "" : seconds(e.phases[k]))), number(e.rows)])));
}

// showRecoveries lists the attempts that took over from one before.
function showRecoveries(list) {
  const kinds = { LOSS: "a process, or what it did, was lost", STALL: "epochs did not end", FREE: "a target was away, or work was handed over" };
  set($("recoveries"), list.length ? table("Newest first", ["At", "What for", "Went on from", "Reason"],
    list.map((r) => [r.at.slice(0, 19).replace("T", " ") + " UTC", kinds[r.kind] || r.kind, r.from ? "epoch " + r.from : "the beginning", el("span", { class: "text" }, r.reason || "")]))
    : el("p", {}, "None lately."));
}

// flow is where the stages are: in columns by role, or in rows where the window is narrow.
function flow(vertices, narrow) {
  const roles = ["enumerator", "reader", "transform", "writer", "committer"].filter((r) => vertices.some((v) => v.role === r));
  const wide = 150, high = 50, at = {};
  let right = 0, bottom = 0;
  roles.forEach((r, n) => vertices.filter((v) => v.role === r).forEach((v, m) => {
    const p = narrow ? { x: m * (wide + 14) + 2, y: n * (high + 34) + 2 } : { x: n * (wide + 84) + 2, y: m * (high + 22) + 2 };
    at[v.id] = p;
    right = Math.max(right, p.x + wide + 2);
    bottom = Math.max(bottom, p.y + high + 2);
  }));
  return { at, wide, high, right, bottom };
}

// drawGraph draws stages and links with what passes them now.
function drawGraph(j) {
  if (!graph || graph.vertices.length === 0) return set($("graph"), "Not placed yet.");
  const narrow = matchMedia("(max-width: 600px)").matches;
  const { at, wide, high, right, bottom } = flow(graph.vertices, narrow);
  const now = Date.parse(j.at), rows = {};
  for (const s of j.sources) if (s.summary && s.summary.rows.value !== undefined) rows[s.name] = s.summary.rows.value;
  if (!previous || previous.fence !== j.fence) previous = { at: now, rows, fence: j.fence, rates: {} };
  if (now - previous.at >= 1000) {
    const rates = {};
    for (const name of Object.keys(rows)) if (previous.rows[name] !== undefined) rates[name] = Math.max(0, Math.round(((rows[name] - previous.rows[name]) * 1000) / (now - previous.at)));
    previous = { at: now, rows, fence: j.fence, rates };
  }
  const sources = Object.fromEntries(j.sources.map((s) => [s.name, s])), sinks = Object.fromEntries(j.sinks.map((s) => [s.name, s]));
  const by = Object.fromEntries(graph.vertices.map((v) => [v.id, v]));
  // What a writer has stored, its committer applies.
  const links = [...graph.edges, ...graph.vertices.filter((v) => v.role === "committer").flatMap((c) => graph.vertices.filter((w) => w.role === "writer" && w.name === c.name).map((w) => ({ from: w.id, to: c.id })))];
  const passes = (l) => {
    const from = by[l.from], s = sources[from.name], k = sinks[from.name];
    if (from.role === "enumerator") return s && s.enumerator && s.enumerator.assigned.value !== undefined ? number(s.enumerator.assigned.value) + " splits" : "";
    if (from.role === "reader") return previous.rates[from.name] !== undefined ? number(previous.rates[from.name]) + " rows/s" : "";
    return from.role === "writer" && k && k.committed ? "epoch " + k.committed : "";
  };
  const held = new Set((j.findings || []).filter((f) => !f.note && f.kind !== "letters_fill").map((f) => (f.about || "").replace(/-\d+$/, "")));
  const picture = svg("svg", { width: right, height: bottom, role: "img", "aria-labelledby": "picture-title" });
  const said = [];
  for (const l of links) {
    const a = at[l.from], b = at[l.to];
    if (!a || !b) continue;
    const [x1, y1, x2, y2] = narrow ? [a.x + wide / 2, a.y + high, b.x + wide / 2, b.y] : [a.x + wide, a.y + high / 2, b.x, b.y + high / 2];
    const half = narrow ? (y2 - y1) / 2 : (x2 - x1) / 2;
    picture.append(svg("path", { d: narrow ? `M${x1} ${y1} C${x1} ${y1 + half} ${x2} ${y2 - half} ${x2} ${y2}` : `M${x1} ${y1} C${x1 + half} ${y1} ${x2 - half} ${y2} ${x2} ${y2}` }));
    const text = passes(l);
    if (text) picture.append(svg("text", narrow ? { x: x2 + 5, y: y2 - 4, class: "small" } : { x: x2 - 4, y: y2 - 5, class: "small", "text-anchor": "end" }, text));
    if (text) said.push(by[l.from].name + " " + by[l.from].role + " to " + by[l.to].name + " " + by[l.to].role + ": " + text);
  }
  for (const v of graph.vertices) {
    const p = at[v.id], bad = held.has(v.id) || (v.role === "committer" && held.has(v.name));
    picture.append(svg("rect", { x: p.x, y: p.y, width: wide, height: high, rx: 5, class: bad ? "bad" : "" }),
      svg("text", { x: p.x + 10, y: p.y + 21 }, v.name), svg("text", { x: p.x + 10, y: p.y + 39, class: "small" }, v.role + (v.parallelism > 1 ? " × " + v.parallelism : "")));
    const count = bad ? "held up" : v.role === "reader" && rows[v.name] !== undefined ? number(rows[v.name]) + " rows" : "";
    if (count) picture.append(svg("text", { x: p.x + wide - 8, y: p.y + 39, class: "small", "text-anchor": "end" }, count));
    if (bad) said.unshift(v.name + " " + v.role + " is held up");
  }
  picture.prepend(svg("title", { id: "picture-title" }, "Flow of " + graph.vertices.map((v) => v.name + " " + v.role).join(", ") + ". " + said.join("; ")));
  set($("graph"), picture);
}
