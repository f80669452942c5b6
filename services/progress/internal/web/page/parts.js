"use strict";
// The elements that the page is made of. All text goes through textContent; nothing is loaded from elsewhere.

const $ = (id) => document.getElementById(id);

// el makes an element: a name, attributes, children or text.
function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) if (v !== undefined) e.setAttribute(k, v);
  e.append(...children.filter((c) => c !== undefined).map((c) => (c instanceof Node ? c : String(c))));
  return e;
}

const svgName = "http://www.w3.org/2000/svg";
function svg(name, attributes, ...children) {
  const e = document.createElementNS(svgName, name);
  for (const [k, v] of Object.entries(attributes)) if (v !== undefined) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// set gives target these children. What is the same stays where it is, so that the focus, a selection and the place in a
// scrolled table outlive an update, and a reader of the screen is told only what is new.
function set(target, ...children) {
  match(target, [...el("div", {}, ...children).childNodes]);
}

function match(target, fresh) {
  const old = [...target.childNodes];
  fresh.forEach((f, i) => {
    const o = old[i];
    if (!o) target.append(f);
    else if (o.nodeName !== f.nodeName) o.replaceWith(f);
    else if (o.nodeType === Node.TEXT_NODE) {
      if (o.data !== f.data) o.data = f.data;
    } else {
      for (const { name } of [...o.attributes]) if (name !== "open" && !f.hasAttribute(name)) o.removeAttribute(name);
      for (const { name, value: v } of [...f.attributes]) if (o.getAttribute(name) !== v) o.setAttribute(name, v);
      match(o, [...f.childNodes]);
    }
  });
  for (const o of old.slice(fresh.length)) o.remove();
}

const number = (n) => n.toLocaleString("en");
const seconds = (ns) => (ns < 1e9 ? (ns / 1e6).toFixed(ns < 1e7 ? 1 : 0) + " ms" : (ns / 1e9).toFixed(ns < 10e9 ? 1 : 0) + " s");
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

// table is one that can be scrolled by keyboard where it is wider than the window.
function table(caption, heads, rows) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, el("table", {}, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map((c, i) => (i ? el("td", {}, c) : el("th", { scope: "row" }, c))))))));
}
