"use strict";
/* Draws the page from its data. All text from the data goes in as text, never as HTML. */
(() => {
  const $ = (id) => document.getElementById(id);
  const live = document.documentElement.dataset.mode === "live";
  const tiers = [
    { key: "full", letter: "F", words: "full: the general path" },
    { key: "table", letter: "T", words: "table: its own types, from a list" },
    { key: "compiled", letter: "C", words: "compiled: code made for it" },
  ];
  const kinds = {
    found: ["circle", "found"], staged: ["rect", "staged"], published: ["triangle", "published"],
    missed: ["crossRot", "missed"], "gave up": ["star", "gave up"],
  };
  const firstBands = 12;
  let data = JSON.parse($("data").textContent);
  let allBands = false;
  const charts = new Map(); /* by canvas id */

  /* ---- numbers and elements ---- */

  const number = (n) => (typeof n === "number" && Number.isFinite(n) ? n : 0);
  const digits = (n, d = 3) => (n !== 0 && Math.abs(n) < 1e-3 ? n.toExponential(1) :
    Number(number(n).toPrecision(d)).toLocaleString("en-GB", { maximumSignificantDigits: d }));
  const scaled = (n, step, units, d = 3) => {
    let unit = 0;
    for (n = number(n); Math.abs(n) >= step && unit < units.length - 1; unit++) n /= step;
    return digits(n, d) + units[unit];
  };
  const count = (n) => scaled(n, 1000, ["", " k", " M", " G", " T"]);
  const bytes = (n) => scaled(n, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
  const ns = (n) => (number(n) > 0 ? scaled(n, 1000, [" ns", " µs", " ms", " s"]) : "–");
  const ms = (n) => scaled(number(n), 1000, [" ms", " s"]);
  const percent = (n) => (n > 0 && n < 1e-4 ? "< 0.01 %" : digits(100 * n, 2) + " %");
  /* What no trial has timed is a model, and looks like one. */
  const useText = (site) => (site.measured || !(site.use_ns > 0) ? "" : "≈ ") + ns(site.use_ns);

  const make = (tag, options = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(options)) {
      if (key === "class") element.className = value;
      else element.setAttribute(key, value);
    }
    element.append(...children.filter((c) => c !== null && c !== undefined));
    return element;
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const place = (site) => (site.file ? site.file.split("/").pop() + ":" + site.line : "");
  const tierBadge = (key) => {
    const tier = tiers.find((t) => t.key === key);
    return make("span", { class: "tier " + (tier ? key : "") }, tier ? tier.letter + " " + key : key || "?");
  };
  /* `code` between backticks. */
  const worded = (text) => text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));

  /* ---- theme: the system's ---- */

  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const applyTheme = () => { document.documentElement.dataset.theme = systemDark.matches ? "dark" : "light"; };
  const redrawAll = () => {
    for (const chart of charts.values()) chart.destroy();
    charts.clear();
    $("bands").replaceChildren();
    drawAll();
  };
  systemDark.addEventListener("change", () => { applyTheme(); redrawAll(); });

  /* ---- patterns: tiers are told apart without colour ---- */

  const pattern = (key) => {
    const color = css(key) || css("quiet"), tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.globalAlpha = key === "compiled" ? 0.55 : 0.22;
    pen.fillStyle = pen.strokeStyle = color;
    pen.fillRect(0, 0, 8, 8);
    pen.globalAlpha = 0.9;
    pen.lineWidth = 1.4;
    if (key === "full") {
      for (const x of [-8, 0, 8]) { pen.beginPath(); pen.moveTo(x, 8); pen.lineTo(x + 8, 0); pen.stroke(); }
    } else if (key === "table") {
      for (const [x, y] of [[2, 2], [6, 6]]) { pen.beginPath(); pen.arc(x, y, 1.1, 0, 7); pen.fill(); }
    }
    return pen.createPattern(tile, "repeat");
  };

  const drawMark = (pen, kind, x, y, size) => {
    Chart.helpers.drawPoint(pen, { pointStyle: kinds[kind] ? kinds[kind][0] : "cross", radius: size, rotation: 0, borderWidth: 1.6 }, x, y);
  };

  const drawLegend = () => {
    const legend = $("legend");
    legend.replaceChildren();
    const swatch = (draw) => {
      const canvas = make("canvas", { width: 44, height: 28, "aria-hidden": "true", style: "width:22px;height:14px" });
      const pen = canvas.getContext("2d");
      pen.scale(2, 2);
      draw(pen);
      return canvas;
    };
    for (const tier of tiers) {
      legend.append(make("span", {}, swatch((pen) => {
        pen.fillStyle = pattern(tier.key);
        pen.fillRect(0, 0, 22, 14);
        pen.fillStyle = css(tier.key);
        pen.fillRect(0, 0, 22, 2);
      }), make("b", {}, tier.letter), " " + tier.words));
    }
    for (const kind of Object.keys(kinds)) {
      legend.append(make("span", {}, swatch((pen) => {
        pen.fillStyle = css("card");
        pen.strokeStyle = css("ink");
        pen.lineWidth = 1.6;
        drawMark(pen, kind, 11, 7, 5);
      }), kind));
    }
  };

  /* ---- the tip, and what is said to screen readers ---- */

  const showTip = (canvas, x, y, text) => {
    const tip = $("tip"), box = canvas.getBoundingClientRect();
    tip.textContent = text;
    tip.hidden = false;
    const left = box.left + scrollX + x + 14, width = tip.offsetWidth;
    tip.style.left = Math.max(8, Math.min(left, scrollX + document.documentElement.clientWidth - width - 8)) + "px";
    tip.style.top = box.top + scrollY + y + 16 + "px";
  };
  const hideTip = () => { $("tip").hidden = true; };

  /* ---- a band: one site over time ---- */

  const seconds = (t) => (t !== 0 && Math.abs(t) < 10 ? ns(t * 1e6) : digits(t / 1000, 4) + " s");
  const stateText = (site, point) => {
    const tier = tiers[point[1]];
    return `${seconds(point[0])}: ${tier ? tier.key : "unknown tier"}, ` +
      (point[2] > 0 ? ns(point[2]) + " a use" : "a use not measured yet");
  };
  const markText = (event) => `${seconds(event.t)}: ${event.kind}` +
    (event.tier ? ` (${event.tier})` : "") + (event.reason ? `\n${event.reason}` : "") +
    (event.detail ? `\n${event.detail}` : "");
  const eventsOf = (site) => data.events.filter((e) => (e.site ? e.site === site.id : e.name === site.name));
  const endTime = () => Math.max(data.duration_ms, 1);

  const tierRuns = (site) => {
    const runs = [];
    site.points.forEach((point, i) => {
      const until = i + 1 < site.points.length ? site.points[i + 1][0] : endTime();
      const last = runs[runs.length - 1];
      if (last && last.tier === point[1]) last.until = until;
      else runs.push({ tier: point[1], from: point[0], until });
    });
    return runs;
  };

  const bandHeight = (site) => Math.max(...site.points.map((p) => p[2]), 0) || 1;
  const bandFormat = (site) => (site.points.some((p) => p[2] > 0) ? ns : () => "");

  /* Where nothing was measured a plan is a line on the axis, apart from the heights beside it. */
  const bandDatasets = (site) => {
    const top = bandHeight(site);
    const sets = tiers.map((tier) => ({
      label: tier.key, data: [], parsing: false, fill: "origin", borderWidth: 2, pointRadius: 0,
      borderColor: css(tier.key), backgroundColor: pattern(tier.key), spanGaps: false, order: 2,
    }));
    site.points.forEach((point, i) => {
      const until = i + 1 < site.points.length ? site.points[i + 1][0] : endTime();
      const y = Math.max(point[2], 0), next = site.points[i + 1], set = sets[point[1]];
      if (!set) return;
      set.data.push({ x: point[0], y }, { x: until, y });
      if (next && (next[1] !== point[1] || (next[2] > 0) !== (y > 0))) set.data.push({ x: until, y: NaN });
    });
    const events = eventsOf(site);
    sets.push({
      label: "marks", type: "scatter", parsing: false, order: 1, borderWidth: 1.6, borderColor: css("ink"),
      backgroundColor: css("card"), pointRadius: 5, pointHoverRadius: 7, clip: false,
      data: events.map((e) => ({ x: Math.min(Math.max(e.t, 0), endTime()), y: top * 1.22 })),
      pointStyle: events.map((e) => (kinds[e.kind] ? kinds[e.kind][0] : "cross")),
    });
    return sets;
  };

  /* Letters in the bands, beside the patterns. */
  const letters = {
    id: "letters",
    afterDatasetsDraw(chart) {
      const { ctx: pen, scales } = chart, site = chart.options.site;
      if (!site) return;
      pen.save();
      pen.font = "700 11px " + getComputedStyle(document.body).fontFamily;
      pen.textBaseline = "bottom";
      for (const run of tierRuns(site)) {
        const from = scales.x.getPixelForValue(run.from), until = scales.x.getPixelForValue(run.until);
        if (!tiers[run.tier] || until - from < 16) continue;
        pen.fillStyle = css("card");
        pen.fillRect(from + 3, scales.y.bottom - 17, 13, 14);
        pen.fillStyle = css(tiers[run.tier].key);
        pen.fillText(tiers[run.tier].letter, from + 6, scales.y.bottom - 4);
      }
      pen.restore();
    },
  };

  /* What lies at this x: marks within reach, else the state in force. */
  const bandAt = (site, chart, x) => {
    const near = eventsOf(site).map((e) => ({ e, d: Math.abs(chart.scales.x.getPixelForValue(e.t) - x) }))
      .filter((n) => n.d <= 7).sort((a, b) => a.d - b.d);
    const t = chart.scales.x.getValueForPixel(x);
    const before = site.points.filter((p) => p[0] <= t);
    const state = before.length ? stateText(site, before[before.length - 1]) : "not known yet";
    if (near.length) return [...near.slice(0, 4).map((n) => markText(n.e)), near.length > 4 ? `and ${near.length - 4} more` : ""].filter(Boolean).join("\n");
    return state;
  };

  const scaleX = (shown) => ({
    type: "linear", min: 0, max: endTime(), grid: { color: css("line"), drawBorder: false },
    ticks: { display: shown, color: css("quiet"), maxTicksLimit: 9, maxRotation: 0, align: "inner", callback: (v) => seconds(v) },
  });
  /* A round step, so that `parts` or fewer of them reach the top: decimal or, for bytes, a power of two. */
  const roundStep = (top, parts, binary) => {
    const least = Math.max(top, 1e-3) / parts, base = binary ? 2 : 10;
    const power = base ** Math.floor(Math.log(least) / Math.log(base) + 1e-9);
    return power * (binary ? [1, 2] : [1, 2, 5, 10]).find((m) => m * power >= least * 0.999);
  };
  const scaleY = (format, top, parts, binary) => {
    const step = roundStep(top, parts, binary);
    return {
      min: 0, max: Math.max(step * Math.ceil(top / step), step), grid: { color: css("line"), drawBorder: false },
      afterFit: (axis) => { axis.width = 66; },
      ticks: { color: css("quiet"), stepSize: step, callback: (v) => (v === 0 ? "0" : format(v)) },
    };
  };
  const still = { animation: false, maintainAspectRatio: false, responsive: true, events: [] };

  const hoverBand = (canvas) => {
    canvas.addEventListener("mousemove", (event) => {
      const chart = charts.get(canvas.id), box = canvas.getBoundingClientRect();
      if (chart) showTip(canvas, event.clientX - box.left, event.clientY - box.top, bandAt(chart.options.site, chart, event.clientX - box.left));
    });
    canvas.addEventListener("mouseleave", hideTip);
    canvas.addEventListener("blur", hideTip);
    let at = -1;
    canvas.addEventListener("keydown", (event) => {
      const chart = charts.get(canvas.id), now = chart.options.site;
      const stops = [...now.points.filter((p, i) => i === 0 || p[1] !== now.points[i - 1][1] || now.points.length < 40)
        .map((p) => ({ t: p[0], text: stateText(now, p) })),
      ...eventsOf(now).map((e) => ({ t: e.t, text: markText(e) }))].sort((a, b) => a.t - b.t);
      const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: stops.length - 1 };
      if (event.key === "Escape") return hideTip();
      if (!(event.key in moves) || !stops.length) return undefined;
      event.preventDefault();
      at = Math.max(0, Math.min(stops.length - 1, moves[event.key]));
      showTip(canvas, chart.scales.x.getPixelForValue(stops[at].t), 24, stops[at].text);
      $("say").textContent = stops[at].text;
      return undefined;
    });
  };

  const bandRow = (site) => {
    const id = "band-" + site.id;
    const row = make("div", { class: "band", id }, make("div", { class: "facts-part" }),
      make("div", { class: "plot" }, make("canvas", { id: "canvas-" + site.id, tabindex: "0", role: "img" })));
    hoverBand(row.querySelector("canvas"));
    return row;
  };

  const fillBand = (row, site, last) => {
    const events = eventsOf(site), canvas = row.querySelector("canvas");
    row.firstChild.replaceChildren(
      make("div", { class: "name mono" }, site.name || "?"),
      make("div", { class: "place" }, [site.kind, place(site)].filter(Boolean).join(" · ")),
      make("div", { class: "facts" }, tierBadge(site.tier), ` ${useText(site)} · ${site.counted ? "" : "at least "}${count(site.uses)} uses`,
        site.pinned ? " · pinned" : null));
    canvas.setAttribute("aria-label", `${site.name}: ${tierRuns(site).map((r) => (tiers[r.tier] ? tiers[r.tier].key : "unknown")).join(", then ")}; ` +
      `${useText(site)} a use; ${events.length} events. Arrow keys tell each change.`);
    const old = charts.get(canvas.id), top = bandHeight(site) * 1.4;
    if (old) {
      old.data.datasets = bandDatasets(site);
      old.options.site = site;
      old.options.scales.x = scaleX(last);
      old.options.scales.y = scaleY(bandFormat(site), top, 3);
      old.update("none");
      return;
    }
    row.querySelector(".plot").style.height = last ? "112px" : "92px";
    charts.set(canvas.id, new Chart(canvas, {
      type: "line", plugins: [letters], data: { datasets: bandDatasets(site) },
      options: { ...still, site, scales: { x: scaleX(last), y: scaleY(bandFormat(site), top, 3) },
        plugins: { legend: { display: false }, tooltip: { enabled: false } } },
    }));
  };

  const drawBands = () => {
    const shown = data.sites.slice(0, allBands ? data.sites.length : firstBands), holder = $("bands");
    if (!shown.length) holder.replaceChildren(make("p", { class: "quiet" }, "No call sites: frames are not counted."));
    else holder.querySelectorAll("p").forEach((p) => p.remove());
    for (const row of [...holder.querySelectorAll(".band")]) {
      if (shown.some((s) => "band-" + s.id === row.id)) continue;
      const id = row.querySelector("canvas").id;
      if (charts.has(id)) charts.get(id).destroy();
      charts.delete(id);
      row.remove();
    }
    shown.forEach((site, i) => {
      let row = $("band-" + site.id);
      if (!row) holder.append(row = bandRow(site));
      fillBand(row, site, i === shown.length - 1);
    });
    $("more").hidden = data.sites.length <= firstBands;
    $("more").textContent = allBands ? `Show the first ${firstBands}` : `Show all ${data.sites.length} sites`;
  };
  $("more").addEventListener("click", () => { allBands = !allBands; redrawAll(); });

  /* ---- memory ---- */

  const valueAt = (points, t, column) => {
    let value = 0;
    for (const point of points) {
      if (point[0] > t) break;
      value = point[column];
    }
    return value;
  };
  const memoryTimes = (things) => {
    const times = new Set([0, endTime()]);
    for (const thing of things) for (const point of thing.points) times.add(point[0]);
    const sorted = [...times].sort((a, b) => a - b), step = Math.ceil(sorted.length / 400);
    return sorted.filter((_, i) => i % step === 0 || i === sorted.length - 1);
  };
  const dashes = [[], [6, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 4]];
  const hues = [168, 212, 28, 275, 48, 330, 100, 0];
  const area = (label, index, points, times) => {
    const dark = document.documentElement.dataset.theme === "dark";
    const color = (alpha) => `hsl(${hues[index % hues.length]} ${dark ? "55% 65%" : "60% 36%"} / ${alpha})`;
    return {
      label, parsing: false, data: times.map((x, i) => ({ x, y: points[i] })), stepped: true, fill: index === 0 ? "origin" : "-1",
      borderColor: color(1), backgroundColor: color(0.2), borderWidth: 1.8, borderDash: dashes[index % dashes.length], pointRadius: 0,
    };
  };
  const memorySeries = (things, parts) => {
    const times = memoryTimes(things), series = [];
    const lines = parts(things);
    for (const line of lines.slice(0, 7)) series.push({ label: line.label, of: [line] });
    if (lines.length > 7) series.push({ label: `${lines.length - 7} others`, of: lines.slice(7) });
    return series.map((one, i) => area(one.label, i, times.map((t) => one.of.reduce((sum, l) => sum + l.at(t), 0)), times));
  };
  const poolParts = (pools) => pools.map((p) => ({ label: `${p.name} · ${p.thread_name || p.thread}`, at: (t) => valueAt(p.points, t, 1) }));
  const bufferParts = (all) => all.flatMap((b) => [
    { label: `${b.name}: live`, at: (t) => valueAt(b.points, t, 2) },
    { label: `${b.name}: cached`, at: (t) => valueAt(b.points, t, 1) - valueAt(b.points, t, 2) }]);

  const stackTop = (sets) => (sets.length ? Math.max(...sets[0].data.map((_, i) => sets.reduce((sum, s) => sum + s.data[i].y, 0))) : 0);

  const memoryText = (chart, x) => {
    const t = chart.scales.x.getValueForPixel(x), lines = [seconds(Math.max(t, 0))];
    for (const set of [...chart.data.datasets].reverse()) {
      const before = set.data.filter((p) => p.x <= t);
      if (before.length) lines.push(`${set.label}: ${bytes(before[before.length - 1].y)}`);
    }
    return lines.join("\n");
  };
  const drawMemory = (id, things, parts, words) => {
    const canvas = $(id), datasets = memorySeries(things, parts), old = charts.get(id);
    canvas.setAttribute("aria-label", `${words}: ` + datasets.map((s) => `${s.label}, ${bytes(s.data[s.data.length - 1].y)} at the end`).join("; "));
    if (old) old.destroy();
    charts.set(id, new Chart(canvas, {
      type: "line", data: { datasets },
      options: { ...still, scales: { x: scaleX(true), y: { ...scaleY(bytes, stackTop(datasets), 5, true), stacked: true } },
        plugins: { tooltip: { enabled: false }, legend: { position: "bottom", labels: { color: css("ink"), usePointStyle: false, boxWidth: 26, boxHeight: 8 } } } },
    }));
  };
  for (const id of ["pools-chart", "buffers-chart"]) {
    const canvas = $(id);
    canvas.addEventListener("mousemove", (event) => {
      const box = canvas.getBoundingClientRect();
      showTip(canvas, event.clientX - box.left, event.clientY - box.top, memoryText(charts.get(id), event.clientX - box.left));
    });
    canvas.addEventListener("mouseleave", hideTip);
    canvas.addEventListener("blur", hideTip);
    let at = 0;
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 0.05, ArrowLeft: -0.05, Home: -1, End: 1 }[event.key], chart = charts.get(id);
      if (event.key === "Escape") hideTip();
      if (step === undefined) return;
      event.preventDefault();
      at = Math.max(0, Math.min(1, at + step));
      const x = chart.scales.x.getPixelForValue(at * endTime());
      showTip(canvas, x, 20, memoryText(chart, x));
      $("say").textContent = $("tip").textContent;
    });
  }

  /* ---- tables ---- */

  const sorted = {}; /* by table: { column, down } */
  const drawTable = (id, columns, rows) => {
    const table = $(id), order = sorted[id];
    if (!rows.length) { table.replaceChildren(); return; }
    const list = [...rows];
    if (order) {
      const key = columns[order.column].key;
      list.sort((a, b) => {
        const x = key(a), y = key(b);
        const by = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return order.down ? -by : by;
      });
    }
    const head = make("tr", {}, ...columns.map((column, i) => {
      const button = make("button", { type: "button" }, column.title);
      button.addEventListener("click", () => {
        const down = sorted[id] && sorted[id].column === i ? !sorted[id].down : column.number === true;
        sorted[id] = { column: i, down };
        drawTable(id, columns, rows);
        $(id).querySelectorAll("th button")[i].focus();
      });
      const options = { scope: "col", class: column.number ? "number" : "" };
      if (order && order.column === i) options["aria-sort"] = order.down ? "descending" : "ascending";
      return make("th", options, button);
    }));
    table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...list.map((row) =>
      make("tr", {}, ...columns.map((column) => make("td", { class: column.number ? "number" : column.long ? "long" : "", "data-label": column.title },
        column.show ? column.show(row) : String(column.key(row))))))));
  };
  const text = (title, key, options = {}) => ({ title, key, ...options });
  const figure = (title, key, format) => ({ title, key: (row) => number(key(row)), show: (row) => format(key(row)), number: true });

  const shareOf = (s) => (data.cpu_ms > 0 ? s.uses * s.use_ns / (data.cpu_ms * 1e6) : 0);
  const siteColumns = [
    text("Site", (s) => s.name, { long: true, show: (s) => make("div", {}, make("a", { href: "#band-" + s.id, class: "mono" }, s.name || "?"),
      make("small", { class: "quiet" }, [s.kind, place(s)].filter(Boolean).join(" · "))) }),
    text("Plan", (s) => s.tier, { show: (s) => make("div", {}, tierBadge(s.tier), s.pinned ? make("small", { class: "quiet" }, "pinned") : null) }),
    text("Types", (s) => s.types.join(", "), { long: true }), figure("Uses", (s) => s.uses, (n) => count(n)),
    figure("Uses/s", (s) => 1000 * s.uses / Math.max(data.duration_ms, 1), count),
    { title: "One use", key: (s) => number(s.use_ns), show: useText, number: true }, figure("Processor", shareOf, percent),
    figure("Misses", (s) => s.misses, count), text("Why it runs that", (s) => s.reason, { long: true }),
  ];
  siteColumns[3].show = (s) => (s.counted ? "" : "≥ ") + count(s.uses);
  const poolColumns = [
    text("Pool", (p) => p.name + (p.gone ? " (gone)" : "")), text("Thread", (p) => p.thread_name || String(p.thread)), text("Device", (p) => p.device),
    figure("Held", (p) => p.held_bytes, bytes), figure("In use", (p) => p.live_bytes, bytes), figure("Most held", (p) => p.peak_bytes, bytes),
    figure("Limit", (p) => p.limit_bytes, (n) => (n ? bytes(n) : "none")), figure("Slots", (p) => p.slots, count),
    figure("Types", (p) => p.types, count), figure("Allocations", (p) => p.allocations, count), figure("Exchanges", (p) => p.exchanges, count),
  ];
  const bufferColumns = [
    text("Buffers", (b) => b.name + (b.gone ? " (gone)" : "")), text("Device", (b) => b.device), figure("Live", (b) => b.live_bytes, bytes),
    figure("Cached", (b) => b.cached_bytes, bytes), figure("Most", (b) => b.high_bytes, bytes), figure("May cache", (b) => b.max_bytes, (n) => (n ? bytes(n) : "none")),
    figure("Hits", (b) => b.hits, count), figure("Misses", (b) => b.misses, count), figure("Refused", (b) => b.refused, count), figure("Failed", (b) => b.failed, count),
  ];
  const eventColumns = [
    figure("Time", (e) => e.t, seconds), text("What", (e) => e.kind), text("Site", (e) => e.name), text("Plan", (e) => e.tier, { show: (e) => tierBadge(e.tier) }),
    text("Reason", (e) => e.reason, { long: true }), text("Detail", (e) => e.detail || "", { long: true }),
  ];

  /* ---- code, folded in ---- */

  const openCodes = new Set(); /* by site: a page that is drawn again leaves them open */
  const drawCodes = () => {
    const sites = data.sites.filter((s) => s.code);
    $("codes-title").hidden = !sites.length;
    $("codes").replaceChildren(...sites.map((site) => {
      const words = site.code_is === "assembler" ? "machine code" : "what it is compiled from";
      const part = make("details", { class: "code" }, make("summary", {}, make("b", { class: "mono" }, site.name || "?"), ` ${site.kind}, ${words}`),
        make("pre", { tabindex: "0" }, site.code));
      part.open = openCodes.has(site.id);
      part.addEventListener("toggle", () => (part.open ? openCodes.add(site.id) : openCodes.delete(site.id)));
      return part;
    }));
  };

  /* ---- head and advice ---- */

  const tile = (title, value, more) => make("div", {}, make("dt", {}, title), make("dd", {}, value), more ? make("dd", {}, more) : null);
  const drawHead = () => {
    const when = data.wall_ms > 0 ? new Date(data.wall_ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : "";
    document.title = `${data.program || "?"} – Tidepool report`;
    $("program").textContent = data.program || "?";
    $("about").textContent = [`process ${data.pid}`, when, data.end, `Tidepool ${data.version}`].filter(Boolean).join(" · ");
    $("verdict").textContent = data.verdict;
    $("damage").hidden = !data.damage;
    $("damage").textContent = data.damage ? `The record is damaged; what is whole is shown. ${data.damage}` : "";
    const most = stackTop(memorySeries(data.pools, poolParts));
    const on = (tier) => data.sites.filter((s) => s.tier === tier).length, learning = data.learning || {};
    $("tiles").replaceChildren(
      tile(data.documents > 1 ? "Recorded" : "From the first event on", ms(data.duration_ms), `${count(data.documents)} look${data.documents > 1 ? "s" : ""} · ${ms(data.cpu_ms)} of the processor`),
      tile("Taken by call sites", percent(data.cpu_ms > 0 ? data.taken_ns / (data.cpu_ms * 1e6) : 0),
        `${ns(data.taken_ns)}, ${data.taken_ns > 0 ? percent(data.measured_ns / data.taken_ns) : "0 %"} of it measured`),
      tile("The same from malloc", data.malloc_ns > 0 ? "≤ " + ns(data.malloc_ns) : "–", "glibc's, modelled by the number of arrays and their sizes"),
      tile("Call sites", count(data.sites.length + number(data.left_out.sites)), `${on("compiled")} compiled · ${on("table")} table · ${on("full")} full`),
      tile("Pools held at most", bytes(most), `in ${data.pools.length + number(data.left_out.pools)} pool${data.pools.length === 1 ? "" : "s"}`),
      tile("Compiles", count(learning.compiled), `${ms(number(learning.spent_us) / 1000)} of the processor · ${count(learning.won)} trials won`));
  };
  let adviceDrawn = "";
  const adviceItem = (a) => {
    const word = a.grade === "slow" ? (a.site ? "time" : "memory") : a.grade, known = a.share >= 0.0005;
    return make("li", { class: a.grade },
      make("div", { class: known ? "share" : "share word" }, known ? percent(a.share) : word, known ? make("small", {}, "of processor time") : null),
      make("p", { class: "what" }, ...worded(a.what)),
      make("p", { class: "why" }, a.site ? make("a", { href: "#band-" + a.site }, a.subject) : a.subject, " · ", ...worded(a.why)),
      make("div", {}, make("p", {}, ...worded(a.instead), a.others ? ` The same holds for ${count(a.others)} more.` : ""), a.code ? make("pre", {}, a.code) : null));
  };
  const drawAdvice = () => {
    if (JSON.stringify([data.advice, data.small]) === adviceDrawn) return;
    adviceDrawn = JSON.stringify([data.advice, data.small]);
    const open = Boolean($("advice").querySelector("details[open]"));
    $("advice").replaceChildren(...data.advice.slice(0, data.worth).map(adviceItem));
    if (data.small) {
      const part = make("details", {}, make("summary", {}, data.small), make("ol", { class: "advice" }, ...data.advice.slice(data.worth).map(adviceItem)));
      part.open = open;
      $("advice").append(make("li", { class: "small" }, part));
    } else if (!data.worth) $("advice").append(make("li", { class: "small" }, "Nothing: no site and no pool of this record costs anything worth a change."));
  };

  const drawAll = () => {
    drawHead();
    drawAdvice();
    drawLegend();
    drawBands();
    $("one-look").hidden = data.documents > 1;
    $("pools-figure").hidden = data.documents < 2;
    $("buffers-figure").hidden = data.documents < 2 || !data.buffers.length;
    drawMemory("pools-chart", data.pools, poolParts, "Bytes that pools hold over time");
    if (data.buffers.length) drawMemory("buffers-chart", data.buffers, bufferParts, "Bytes of buffers over time");
    drawTable("pools-table", poolColumns, data.pools);
    drawTable("buffers-table", bufferColumns, data.buffers);
    drawTable("sites-table", siteColumns, data.sites);
    drawCodes();
    drawTable("events-table", eventColumns, data.events);
    $("events-count").textContent = `${data.events.length}${data.left_out.events ? ` of ${data.events.length + data.left_out.events}` : ""}`;
    const left = data.left_out, shown = (key) => (left[key] ? `${count(data[key].length)} of ${count(data[key].length + left[key])} ${key}` : "");
    $("sites-left").textContent = left.sites ? `${shown("sites")}, those that took the most time.` : "";
    const more = ["pools", "buffers", "events"].map(shown).filter(Boolean);
    $("left").textContent = more.length ? `Shown for room: ${more.join(", ")}. All are in the record.` : "";
  };

  /* ---- the live page ---- */

  const ask = async () => {
    try {
      const answer = await fetch("data.json", { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      data = await answer.json();
      $("live").className = "";
      $("live").textContent = "live";
      if (!document.hidden) drawAll();
    } catch (error) {
      $("live").className = "lost";
      $("live").textContent = "ended";
    }
    setTimeout(ask, 1000);
  };

  applyTheme();
  drawAll();
  if (live) ask();
  window.tidepoolReport = { charts, current: () => data };
})();
