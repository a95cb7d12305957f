// SPDX-License-Identifier: MIT
// The page: what the events tell, and buttons that send requests. Names come from other processes: they are text wherever
// they go. Rows stay where they are and change their text, so that nobody's click or word is lost.
"use strict";
const token = location.hash.slice(1), workers = new Map(), entries = new Map();
const LOOKS = 120; // a chart shows so many

function make(kind, parent, text, name) {
  const one = document.createElement(kind);
  if (text !== undefined) one.textContent = text;
  if (name) one.className = name;
  parent.append(one);
  return one;
}
function state(text, good) {
  const one = document.getElementById("state");
  one.textContent = text;
  one.className = good ? "good" : "bad";
}
async function send(method, path, body) {
  const said = document.getElementById("said");
  try {
    const answer = await fetch(path, {method, headers: {Authorization: "Bearer " + token}, body: JSON.stringify(body)});
    const text = await answer.json();
    said.textContent = answer.ok ? `done: ${decodeURIComponent(path)}` : `${text.title}: ${text.detail}`;
    said.className = answer.ok ? "good" : "bad";
  } catch (error) {
    said.textContent = String(error);
    said.className = "bad";
  }
}
function button(parent, label, act) {
  const one = make("button", parent, label);
  one.type = "button";
  one.disabled = !token;
  one.onclick = act;
}
function choice(parent, label, options) {
  const one = make("select", parent);
  one.setAttribute("aria-label", label);
  for (const option of options) make("option", one, option);
  return one;
}
function input(parent, label, value) {
  const one = make("input", parent);
  one.setAttribute("aria-label", label);
  one.placeholder = label;
  one.value = value;
  return one;
}

// A line over the last looks; null: no figure. Without the charting library there is none.
class Life {
  constructor(parent, axis) {
    this.values = Array(LOOKS).fill(null);
    this.place = make("div", parent, undefined, "life");
    if (!window.Chart) return this.place.remove();
    const colour = name => getComputedStyle(document.body).getPropertyValue(name).trim();
    this.chart = new Chart(make("canvas", this.place), {
      type: "line",
      data: {labels: this.values.map((_, i) => (i - LOOKS + 1) / 2 + " s"),
             datasets: [{data: this.values, borderColor: colour("--mark"), borderWidth: 1.5, pointRadius: 0, spanGaps: true}]},
      options: {animation: false, maintainAspectRatio: false, events: axis ? undefined : [],
                interaction: {mode: "index", intersect: false}, plugins: {legend: {display: false}, tooltip: {enabled: axis}},
                scales: {x: {display: false}, y: {display: axis, beginAtZero: true, grid: {color: colour("--line")},
                                                  title: {display: axis, text: "µs", color: colour("--soft")},
                                                  ticks: {maxTicksLimit: 4, color: colour("--soft")}}}}});
  }
  add(value) {
    this.values.push(value);
    this.values.shift();
    if (this.chart) this.chart.update("none");
  }
}

const micro = ns => (ns / 1000).toPrecision(3) + " µs";
const chosen = row => row.candidates.find(c => c.name === row.choice) || row.candidates[0];
function measured(site) { // its first key's figures
  return site && site.rows.length ? chosen(site.rows[0]) : undefined;
}

class Worker {
  constructor(pid) {
    this.card = make("section", document.getElementById("workers"));
    const head = make("h2", this.card);
    this.name = make("span", head);
    this.figure = make("small", head);
    button(head, "tune", () => send("POST", "/tune", {worker: pid}));
    this.life = new Life(this.card, true);
    const table = make("table", this.card), titles = make("tr", make("thead", table));
    for (const title of ["site or tunable", "what it is", "its last minute"]) make("th", titles, title);
    this.rows = make("tbody", table);
  }
  show(worker, objective) {
    const figures = measured(objective);
    this.name.textContent = `${worker.program} ${worker.pid}`;
    this.figure.textContent = figures ? `${objective.name}: ${micro(figures.ns)} ± ${micro(figures.error_ns)} of ${figures.uses} uses` : "";
    this.life.add(figures && figures.uses ? figures.ns / 1000 : null);
  }
}

class Entry {
  constructor(site, rows) {
    const path = verb => `/sites/${encodeURIComponent(site.id)}/${verb}`;
    const row = make("tr", rows), name = make("td", row, site.name), act = (verb, body) => send("PUT", path(verb), body);
    row.id = "site-" + site.id;
    make("div", name, site.kind + (site.file ? `, ${site.file.split("/").pop()}:${site.line}` : ""), "place");
    this.row = row;
    const cell = make("td", row);
    this.is = make("div", cell, "", "is");
    this.life = new Life(make("td", row), false);
    if (site.tier) {
      const tier = choice(cell, "tier", ["full", "table", "compiled"]);
      button(cell, "pin", () => act("pin", {tier: tier.value}));
      button(cell, "unpin", () => act("pin", {tier: null}));
      const types = site.kind === "scope" ? input(cell, "f64 i32 …", "") : undefined;
      if (types) button(cell, "declare", () => act("declare", {types: types.value.split(/[\s,]+/).filter(t => t)}));
    } else if (site.value !== undefined) {
      const value = input(cell, `${site.low} to ${site.high}`, site.value);
      button(cell, "set", () => act("knob", {value: Number(value.value)}));
    } else if (site.kind === "variants") {
      const variant = choice(cell, "variant", []);
      this.variants = names => names.forEach(n => [...variant.options].some(o => o.text === n) || make("option", variant, n));
      button(cell, "pin", () => act("knob", {variant: variant.value}));
    }
    button(cell, "reset", () => act("reset", {}));
  }
  show(site) {
    const since = this.last && (site.seen_ns - this.last.seen_ns) / 1e9;
    let value = null;
    if (site.tier) {
      value = since > 0 && site.uses >= this.last.uses ? (site.uses - this.last.uses) / since : null;
      this.is.textContent = `${site.tier}${site.pinned ? ", pinned" : ""}${site.declared ? ", declared" : ""} [${site.types.join(" ")}]`
        + ` ${site.uses} uses${value === null ? "" : `, ${Math.round(value)}/s`}${site.reason ? `: ${site.reason}` : ""}`;
    } else if (site.value !== undefined) {
      value = site.value;
      this.is.textContent = `${site.value}, of ${site.low} to ${site.high}, at first ${site.initial}`;
    } else {
      const best = measured(site);
      value = best && best.uses ? best.ns : null;
      this.is.textContent = site.rows.map(r => (r.candidates.length > 1 ? `key ${r.key}: ${r.choice}${r.pinned ? ", pinned" : ""}; ` : "")
        + r.candidates.map(c => `${c.name} ${micro(c.ns)} ± ${micro(c.error_ns)} of ${c.uses}`).join(", ")).join("; ") || "not used yet";
      if (this.variants) this.variants(site.rows.flatMap(r => r.candidates.map(c => c.name)));
    }
    this.life.add(value);
    this.last = site;
  }
}

function prune(map, kept, place) {
  for (const [key, one] of map) if (!kept.has(key)) { place(one); map.delete(key); }
}
function show(sites, list) {
  prune(workers, new Set(list.map(w => w.pid)), w => w.card.remove());
  prune(entries, new Set(sites.map(s => s.id)), e => e.row.remove());
  for (const worker of list.sort((a, b) => a.program < b.program ? -1 : a.program > b.program ? 1 : a.pid - b.pid)) {
    if (!workers.has(worker.pid)) workers.set(worker.pid, new Worker(worker.pid));
    const its = workers.get(worker.pid), has = sites.filter(s => s.worker === worker.pid);
    its.show(worker, has.find(s => s.kind === "measured"));
    for (const site of has) {
      if (!entries.has(site.id)) entries.set(site.id, new Entry(site, its.rows));
      entries.get(site.id).show(site);
    }
  }
  state(`live, ${list.length} workers` + (token ? "" : "; without the token (behind the # of the address) nothing can be changed"), token);
}

const events = new EventSource("events");
let known = [];
events.addEventListener("workers", e => { known = JSON.parse(e.data); });
events.addEventListener("sites", e => show(JSON.parse(e.data), known));
events.addEventListener("change", e => {
  const entry = JSON.parse(e.data), row = document.getElementById("journal").insertRow(0);
  make("td", row, new Date(1000 * entry.time).toLocaleTimeString());
  make("td", row, entry.worker);
  make("td", row, entry.what || JSON.stringify(entry.request));
  make("td", row, entry.verdict, entry.verdict.split(" ")[0]);
  make("td", row, entry.after_ns === undefined ? "" : `${micro(entry.before_ns)} → ${micro(entry.after_ns)}`);
  make("td", row, entry.why);
  while (row.parentNode.rows.length > 512) row.parentNode.lastChild.remove();
});
events.onerror = () => state("the service is gone", false);
