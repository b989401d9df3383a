// report.js - draws the page of `cohort report`, and of `cohort compare`, from the JSON in it: charts as SVG, tables, and what
// a keyboard and a screen reader need of them. Nothing is fetched; but where `cohort watch` serves the page
// it asks for what is new, and draws that.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const runs = data.runs;
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 640, HEIGHT = 300, LEFT = 62, RIGHT = 14, TOP = 10, BOTTOM = 34;
  const hidden = new Set();
  const charts = new Map();
  const view = { axis: "step", smooth: 0 };

  // ---- elements and numbers ----

  // Text becomes text nodes alone, so that a name from a file is never markup.
  function el(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
      if (value !== undefined && value !== null) node.setAttribute(key, value);
    node.append(...children.filter((c) => c !== undefined && c !== null));
    return node;
  }
  function svg(name, attributes = {}, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }
  const known = (v) => typeof v === "number" && Number.isFinite(v);
  function number(v, digits = 4) {
    if (!known(v)) return "–";
    if (Number.isInteger(v)) return v.toLocaleString("en");
    const size = Math.abs(v);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) return v.toExponential(2);
    if (size >= 1000) return v.toLocaleString("en", { maximumFractionDigits: size < 1e4 ? 1 : 0 });
    return v.toLocaleString("en", { maximumFractionDigits: digits });
  }
  const fixed = (v, digits) => (known(v) ? v.toFixed(digits) : "–");
  const percent = (v) => (known(v) ? (100 * v).toFixed(1) + "\u00a0%" : "–");
  function seconds(v) {
    if (!known(v)) return "–";
    if (v < 60) return (Number.isInteger(v) ? number(v) : v.toFixed(2)) + " s";
    if (v < 3600) return Math.floor(v / 60) + " min " + Math.round(v % 60) + " s";
    return Math.floor(v / 3600) + " h " + Math.round((v % 3600) / 60) + " min";
  }
  function bytes(v) {
    if (!known(v)) return "–";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; v >= 1024 && unit + 1 < units.length; unit++) v /= 1024;
    return number(v, unit ? 1 : 0) + " " + units[unit];
  }
  const colour = (i) => (typeof i === "string" ? `var(--${i})` : `var(--c${i % 8})`);
  const dashes = ["", "6 3", "2 3", "8 3 2 3"];
  const dash = (i) => (typeof i === "string" ? "2 4" : dashes[Math.floor(i / 8) % 4]);
  function key(i) {
    const mark = el("span", { class: "key", "aria-hidden": "true" });
    mark.style.background = colour(i);
    return mark;
  }
  // A run of a comparison has the colour of its strategy, and dashes by its number of ranks.
  function lookOf(run) {
    let after = 0;
    for (const g of data.compare?.groups ?? [])
      if (run < (after += g.done)) return { hue: strategies().indexOf(g.strategy), dash: dashes[rankCounts().indexOf(g.ranks) % 4] };
    return { hue: run, dash: dash(run) };
  }
  function runKey(run) {
    const look = lookOf(run), mark = svg("svg", { class: "key line", viewBox: "0 0 28 10", "aria-hidden": "true" });
    mark.append(svg("line", { x1: 0, x2: 28, y1: 5, y2: 5, style: `stroke: ${colour(look.hue)}`, "stroke-dasharray": look.dash }));
    return mark;
  }
  function table(head, rows, options = {}) {
    const body = el("tbody");
    for (const row of rows) {
      const line = el("tr", { class: row.class });
      (row.cells || row).forEach((cell, i) =>
        line.append(el(i === 0 ? "th" : "td",
          { class: head[i].n ? "n" : head[i].line ? "line" : null, scope: i === 0 ? "row" : null }, cell ?? "–")));
      body.append(line);
    }
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.caption },
      el("table", { id: options.id },
        el("caption", { class: "hidden" }, options.caption || ""),
        el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col", class: h.n ? "n" : null }, h.text)))),
        body));
  }
  // Makes `old` what `made` is, and keeps the elements that are there: what has the focus, is scrolled or
  // opened stays so.
  function morph(old, made) {
    if (old.isEqualNode(made)) return;
    if (old.nodeType !== Node.ELEMENT_NODE || old.nodeName !== made.nodeName) {
      old.replaceWith(made);
      return;
    }
    for (const { name } of [...old.attributes]) if (!made.hasAttribute(name) && name !== "open") old.removeAttribute(name);
    for (const { name, value } of [...made.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const from = [...old.childNodes], to = [...made.childNodes];
    to.forEach((node, i) => { if (i < from.length) morph(from[i], node); else old.append(node); });
    from.slice(to.length).forEach((node) => node.remove());
  }
  // Drawn again, a section changes in its place. `place` is that of what draws it.
  let place = 0;
  function section(id, title, ...children) {
    const main = document.getElementById("main"), old = document.getElementById(id)?.parentNode;
    const made = el("section", { "aria-labelledby": id, "data-place": String(place) }, el("h2", { id }, title), ...children);
    if (old) {
      morph(old, made);
      return;
    }
    main.insertBefore(made, [...main.children].find((s) => Number(s.dataset.place) > place) ?? null);
    document.getElementById("sections").replaceChildren(...[...main.querySelectorAll("section > h2")].map((h) =>
      el("li", {}, el("a", { href: "#" + h.id }, h.textContent))));
  }

  // ---- charts ----

  function ticks(low, high, wanted) {
    const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
    const out = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step)
      out.push(Math.abs(v) < step * 1e-9 ? 0 : v);
    return out;
  }
  function tick(v, step) {
    if (Math.abs(v) >= 1e6) return v / 1e6 + "M";
    if (Math.abs(v) >= 1e4) return v / 1e3 + "k";
    const digits = Math.ceil(-Math.log10(step) - 1e-9);
    if (v !== 0 && digits > 6 && Math.abs(v) < 1e-3)
      return v.toExponential(Math.max(0, Math.floor(Math.log10(Math.abs(v)) + 1e-9) + digits));
    if (v !== 0 && digits > 4)
      return v.toFixed(Math.min(12, digits));
    return String(Number(v.toPrecision(6)));
  }
  const axes = { step: "step", wall_seconds: "seconds since the start", epoch: "epoch" };
  function axisOf(table) {
    if (view.axis !== "epoch") return table[view.axis];
    const per = table.steps_per_epoch;
    return per > 0 ? table.step.map((s) => s / per) : table.step;
  }
  // An exponential average, whose start is not pulled to 0.
  function smoothed(y, factor) {
    if (!factor) return y;
    let sum = 0, weight = 0;
    return y.map((v) => {
      if (!known(v)) return v;
      sum = factor * sum + (1 - factor) * v;
      weight = factor * weight + (1 - factor);
      return sum / weight;
    });
  }
  // The lowest and the highest of each pixel's points: a spike is never lost.
  function thin(x, y, from, to, columns) {
    const out = [];
    let at = -1, low, high, first, last;
    const flush = () => {
      if (at < 0) return;
      const some = [first, low, high, last].sort((a, b) => a - b);
      some.forEach((i, k) => { if (k === 0 || i !== some[k - 1]) out.push(i); });
    };
    for (let i = 0; i < x.length; i++) {
      if (!known(y[i]) || !known(x[i]) || x[i] < from || x[i] > to) continue;
      const column = Math.floor((x[i] - from) / ((to - from) || 1) * columns);
      if (column !== at) { flush(); at = column; low = high = first = i; }
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
      last = i;
    }
    flush();
    return out;
  }
  // The index whose x is nearest; x ascends.
  function nearest(x, v) {
    let low = 0, high = x.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (x[middle] < v) low = middle; else high = middle;
    }
    return Math.abs((x[low] ?? Infinity) - v) <= Math.abs((x[high] ?? Infinity) - v) ? low : high;
  }

  // A source is a column of a run's table, by the axis that is chosen, or has x and y of its own, as `options.axis`
  // names them: with `low` and `high` bars, where it has those.
  function chart(id, title, sources, options = {}) {
    const output = el("output", { "aria-live": "off" });
    const picture = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: "0", role: "img", id });
    const help = "Arrow keys move, + and - zoom, Escape shows all.";
    const figure = el("figure", {}, el("figcaption", {}, el("span", {}, title), output), picture);
    const state = { from: null, to: null, span: null };
    let lines = [], range, scaleX, scaleY, pointer = null;

    function load() {
      lines = sources.filter((s) => !hidden.has(s.run)).map((s) => {
        const y = s.y ?? s.table[s.column];
        return { ...(s.name ? { dash: dash(s.hue) } : { name: runs[s.run].name, ...lookOf(s.run) }), ...s, x: s.x ?? axisOf(s.table), y: options.smooth ? smoothed(y, view.smooth) : y };
      });
      let from = Infinity, to = -Infinity;
      for (const l of lines)
        for (const v of l.x) if (known(v)) { if (v < from) from = v; if (v > to) to = v; }
      if (!(from < to)) { from = known(from) ? from - 0.5 : 0; to = from + 1; }
      range = [from, to];
    }
    function draw() {
      const from = state.from ?? range[0], to = state.to ?? range[1];
      const picked = lines.map((l) => thin(l.x, l.y, from, to, WIDTH - LEFT - RIGHT));
      let low = Infinity, high = -Infinity;
      lines.forEach((l, k) => picked[k].forEach((i) => {
        low = Math.min(low, l.y[i], l.low?.[i] ?? Infinity);
        high = Math.max(high, l.y[i], l.high?.[i] ?? -Infinity);
      }));
      if (options.zero && low > 0) low = 0;
      if (!(low <= high)) { low = 0; high = 1; }
      if (low === high) { const by = Math.abs(low) * 0.1 || 0.5; low -= by; high += by; }
      const room = (high - low) * 0.05;
      if (!(low >= 0 && low - room < 0)) low -= room; else low = Math.max(0, low - room);
      high += room;
      scaleX = (v) => LEFT + (v - from) / (to - from) * (WIDTH - LEFT - RIGHT);
      scaleY = (v) => HEIGHT - BOTTOM - (v - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
      picture.replaceChildren();
      const ys = ticks(low, high, 5), xs = options.at?.filter((v) => v >= from && v <= to) ?? ticks(from, to, 6).filter((v) => view.axis !== "step" || Number.isInteger(v));
      for (const v of ys) {
        picture.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: scaleY(v), y2: scaleY(v) }));
        picture.append(svg("text", { x: LEFT - 6, y: scaleY(v) + 4, "text-anchor": "end" }, tick(v, ys[1] - ys[0])));
      }
      for (const v of xs)
        picture.append(svg("text", { x: scaleX(v), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, tick(v, xs[1] - xs[0] || 1)));
      picture.append(svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 3, "text-anchor": "end" }, axis()));
      lines.forEach((l, k) => {
        const path = picked[k].map((i) => scaleX(l.x[i]).toFixed(1) + "," + scaleY(l.y[i]).toFixed(1));
        if (l.low)
          for (const i of picked[k])
            picture.append(svg("line", { class: "error", x1: scaleX(l.x[i]), x2: scaleX(l.x[i]), y1: scaleY(l.low[i]), y2: scaleY(l.high[i]), style: `stroke: ${colour(l.hue)}` }));
        if (path.length <= 30 && typeof l.hue !== "string") // few enough to be seen one by one
          for (const point of path) {
            const [cx, cy] = point.split(",");
            picture.append(svg("circle", { cx, cy, r: 3, style: `fill: ${colour(l.hue)}` }));
          }
        picture.append(svg("polyline", { class: "curve", points: path.join(" "), "data-run": l.name, "data-points": l.x.length,
          "data-last": l.y[l.y.length - 1], "data-label": l.label ?? "", style: `stroke: ${colour(l.hue)}`, "stroke-dasharray": l.dashed ? "5 4" : l.dash }));
      });
      if (state.span)
        picture.append(svg("rect", { class: "span", x: Math.min(...state.span), y: TOP, width: Math.abs(state.span[1] - state.span[0]), height: HEIGHT - TOP - BOTTOM }));
      picture.setAttribute("aria-label", describe());
      if (pointer !== null) read(pointer);
    }
    function describe() {
      const parts = lines.map((l) => {
        let last, low = Infinity, high = -Infinity;
        for (const v of l.y) if (known(v)) { last = v; if (v < low) low = v; if (v > high) high = v; }
        return `${l.name}${l.label ? " " + l.label : ""}: ` + (options.at ? l.x.map((v, i) => `${number(l.y[i])} at ${v}`).join(", ")
          : `last ${number(last)}, lowest ${number(low)}, highest ${number(high)}`);
      });
      return `${title} by ${axis()}. ${parts.join("; ")}. ${help}`;
    }
    const axis = () => options.axis ?? axes[view.axis];
    function zoom(from, to) {
      const least = (range[1] - range[0]) / 1e5;
      if (to - from < least) return;
      state.from = Math.max(range[0], from);
      state.to = Math.min(range[1], to);
      if (state.from <= range[0] && state.to >= range[1]) state.from = state.to = null;
      draw();
    }
    function at(event) {
      const box = picture.getBoundingClientRect();
      return (event.clientX - box.left) / box.width * WIDTH;
    }
    const value = (px) => {
      const from = state.from ?? range[0], to = state.to ?? range[1];
      return from + (px - LEFT) / (WIDTH - LEFT - RIGHT) * (to - from);
    };
    function read(px) {
      pointer = px;
      let x = value(px);
      if (options.at) px = scaleX(x = options.at[nearest(options.at, x)]);
      const parts = lines.filter((l) => l.x.length).map((l) => {
        const i = nearest(l.x, x);
        return (lines.length > 1 ? (options.at ? [l.name, l.label].filter(Boolean).join(" ") : l.label || l.name) + " " : "") + number(l.y[i]);
      });
      output.textContent = `${options.axis ?? (view.axis === "wall_seconds" ? "s" : view.axis)} ${number(x, 2)}: ${parts.slice(0, 4).join(", ")}${parts.length > 4 ? ", ..." : ""}`;
      picture.querySelector(".cursor")?.remove();
      picture.append(svg("line", { class: "cursor", x1: px, x2: px, y1: TOP, y2: HEIGHT - BOTTOM }));
    }
    picture.addEventListener("pointerdown", (event) => {
      state.span = [at(event), at(event)];
      picture.setPointerCapture(event.pointerId);
    });
    picture.addEventListener("pointermove", (event) => {
      const px = Math.min(WIDTH - RIGHT, Math.max(LEFT, at(event)));
      if (state.span) { state.span[1] = px; draw(); }
      read(px);
    });
    picture.addEventListener("pointerup", () => {
      const span = state.span;
      state.span = null;
      if (span && Math.abs(span[1] - span[0]) > 6) zoom(value(Math.min(...span)), value(Math.max(...span)));
      else draw();
    });
    picture.addEventListener("pointercancel", () => { state.span = null; draw(); });
    picture.addEventListener("pointerleave", () => { pointer = null; picture.querySelector(".cursor")?.remove(); });
    picture.addEventListener("dblclick", () => { state.from = state.to = null; draw(); });
    picture.addEventListener("keydown", (event) => {
      const from = state.from ?? range[0], to = state.to ?? range[1], w = to - from;
      const acts = {
        "+": () => zoom(from + w / 4, to - w / 4), "=": () => zoom(from + w / 4, to - w / 4),
        "-": () => zoom(from - w / 2, to + w / 2),
        ArrowLeft: () => zoom(Math.max(range[0], from - w / 5), Math.max(range[0] + w, to - w / 5)),
        ArrowRight: () => zoom(Math.min(range[1] - w, from + w / 5), Math.min(range[1], to + w / 5)),
        Escape: () => { state.from = state.to = null; draw(); },
      };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });
    if (!options.axis) charts.set(id, {
      figure,
      reset: () => { state.from = state.to = null; load(); draw(); },
      update: (more) => { sources = more; load(); draw(); },
    });
    load();
    draw();
    return figure;
  }

  // ---- a comparison: strategies over numbers of ranks ----

  const spread = (f, show) => (f?.n > 1 ? `${show(f.mean)} ± ${show(f.sd)}` : show(f?.mean));
  function showComparison() {
    const c = data.compare;
    if (!c) return;
    const facts = el("dl", { class: "facts", id: "comparison-facts" });
    for (const [name, text] of [["Config", c.config], ["Model", c.model], ["Data", c.dataset], ["Batch, over all ranks", number(c.batch)], ["Epochs", number(c.epochs)],
      ["Seed" + (c.has_seeds ? "s" : ""), c.seeds], ["Cells", number(c.groups.reduce((sum, g) => sum + g.of, 0))]])
      facts.append(el("div", {}, el("dt", {}, name), el("dd", {}, text || "–")));
    const head = ["strategy", "ranks", "time", "samples/s", "speedup", "predicted", "efficiency", "accuracy", "loss", ...c.metrics, "status"].map((text, i) => ({ text, n: i > 0 && text !== "status", line: text === "status" }));
    const rows = c.groups.map((g) => [el("span", {}, key(strategies().indexOf(g.strategy)), g.strategy), number(g.ranks), spread(g.train_seconds, seconds), number(g.samples_per_second.mean, 0),
      spread(g.speedup, (v) => fixed(v, 2)), fixed(g.predicted_speedup.mean, 2), percent(g.speedup.mean / g.ranks), spread(g.test_accuracy, (v) => fixed(v, 4)), spread(g.test_loss, (v) => fixed(v, 4)),
      ...c.metrics.map((m) => spread(g["test_" + m], (v) => fixed(v, 4))), c.has_seeds ? `${g.done} of ${g.of} done` : g.state]);
    section("comparison", "Comparison", facts, table(head, rows, { id: "comparison-table", caption: "Strategies on numbers of ranks" }),
      c.has_seeds ? el("p", {}, "Means over seeds ± standard deviations (n − 1).") : null,
      ...c.groups.filter((g) => g.why).map((g) => el("p", { class: "wrong" }, `${g.strategy}, ${number(g.ranks)} rank${g.ranks === 1 ? "" : "s"}: ${g.why}`)));
  }
  const strategies = () => [...new Set(data.compare.groups.map((g) => g.strategy))];
  const rankCounts = () => [...new Set(data.compare.groups.map((g) => g.ranks))].sort((a, b) => a - b);
  // A line for each strategy that has numbers: `of` gives those of a group, with a minimum and a maximum over seeds.
  function byRanks(of, more = {}) {
    return strategies().map((name, hue) => {
      const points = data.compare.groups.filter((g) => g.strategy === name && known(of(g)?.mean)).sort((a, b) => a.ranks - b.ranks);
      const seeds = points.some((g) => of(g).n > 1);
      return { name, hue, x: points.map((g) => g.ranks), y: points.map((g) => of(g).mean), low: seeds ? points.map((g) => of(g).min) : null, high: seeds ? points.map((g) => of(g).max) : null, ...more };
    }).filter((line) => line.x.length);
  }
  function showByRanks() {
    const c = data.compare;
    if (!c || document.getElementById("by-ranks")) return;
    const at = rankCounts(), options = { axis: "ranks", at };
    const speedup = byRanks((g) => g.speedup), holder = el("div", { class: "charts" });
    const add = (id, title, lines, more) => { if (lines.length) holder.append(chart(id, title, lines, { ...options, ...more })); };
    if (speedup.length)
      add("chart-speedup", "Speedup over one rank", [{ name: "ideal", hue: "faint", x: at, y: at }, ...speedup, ...byRanks((g) => g.predicted_speedup, { label: "predicted", dashed: true })], { zero: true });
    add("chart-step-times", "Milliseconds of a step",
      [...byRanks((g) => ({ mean: 1000 * g.compute_seconds.mean / g.steps.mean }), { label: "T_comp" }), ...byRanks((g) => ({ mean: 1000 * g.sync_seconds.mean / g.steps.mean }), { label: "T_sync", dashed: true })], { zero: true });
    add("chart-accuracy-by-ranks", "Test accuracy after training", byRanks((g) => g.test_accuracy));
    add("chart-loss-by-ranks", "Test loss after training", byRanks((g) => g.test_loss));
    for (const m of c.metrics) add("chart-" + m, `Test ${m} after training`, byRanks((g) => g["test_" + m]));
    const legend = el("div", { class: "legend" }, ...strategies().map((name, i) => el("span", {}, key(i), name)));
    section("by-ranks", "Over ranks", el("p", {}, "Solid: measured, and T_comp. Dashed: the predicted speedup, and T_sync. Dotted: ideal, as many times as ranks." +
      (c.has_seeds ? " Bars: minimum and maximum over seeds." : "")), legend, holder);
  }
  function showStepTimes() {
    const c = data.compare;
    if (!c) return;
    const head = [{ text: "strategy" }, ...["ranks", "T_comp", "T_sync", "T_sync / T_comp", "R − 1", "predicted", "speedup"].map((text) => ({ text, n: true })), { text: "pays" }];
    const rows = c.groups.filter((g) => known(g.compute_seconds.mean)).map((g) => {
      const ratio = g.sync_seconds.mean / g.compute_seconds.mean, ms = (v) => number(1000 * v / g.steps.mean, 3) + " ms";
      return [g.strategy, number(g.ranks), ms(g.compute_seconds.mean), ms(g.sync_seconds.mean), fixed(ratio, 3), number(g.ranks - 1), fixed(g.predicted_speedup.mean, 2), fixed(g.speedup.mean, 2),
        g.ranks === 1 ? "–" : ratio < g.ranks - 1 ? "yes" : "no"];
    });
    if (rows.length)
      section("step-times", "T_comp and T_sync", el("p", {}, "With batches of B samples a rank, an epoch of N samples takes N / B · T_comp on one rank, and N / (R B) · (T_comp + T_sync) on R. So the speedup " +
        "is R / (1 + T_sync / T_comp), and R ranks pay while T_sync / T_comp < R − 1. T_comp is what rank 0 computes in a step, on its share of the batch; T_sync is its time in the strategy, with waiting for other ranks: means over the run."),
        table(head, rows, { id: "step-times-table", caption: "T_comp and T_sync" }));
  }
  function showCosts() {
    const c = data.compare;
    if (!c) return;
    const at = (g) => c.groups.find((other) => other.strategy === "sync" && other.ranks === g.ranks);
    const to = (g, name) => (at(g) ? g[name].mean / at(g)[name].mean : NaN);
    const head = [{ text: "strategy" }, ...["ranks", "time", "time × ranks", "in strategy", "sent", "sent a step", "time / sync", "sent / sync", "accuracy − sync"].map((text) => ({ text, n: true }))];
    const rows = c.groups.filter((g) => known(g.train_seconds.mean)).map((g) => [g.strategy, number(g.ranks), seconds(g.train_seconds.mean), seconds(g.train_seconds.mean * g.ranks),
      percent(g.sync_seconds.mean / (g.sync_seconds.mean + g.compute_seconds.mean)), bytes(g.bytes_sent.mean), bytes(g.bytes_sent.mean / g.steps.mean),
      fixed(to(g, "train_seconds"), 2), fixed(to(g, "bytes_sent"), 3), at(g) ? fixed(g.test_accuracy.mean - at(g).test_accuracy.mean, 4) : "–"]);
    if (rows.length)
      section("costs", "Cost of each strategy", el("p", {}, "Sent is what rank 0 put on the transport. The last three columns are against sync on as many ranks, where that was run."), table(head, rows, { id: "costs-table", caption: "Cost of each strategy" }));
  }

  // ---- sections ----

  function showSummary() {
    if (data.compare) return; // has its own
    const names = ["run", "state", "model", "data", "strategy", "ranks", "steps", "test accuracy", "test loss", "training", "samples/s"];
    const rows = runs.map((r, i) => {
      const s = r.summary || r.latest || {};
      return [el("span", {}, runKey(i), r.name), r.state, r.model, r.dataset, r.strategy, number(r.ranks), number(r.steps),
        fixed(s.best_test_accuracy ?? r.test_accuracy, 4), fixed(s.best_test_loss ?? r.test_loss, 4), seconds(s.train_seconds), number(s.samples_per_second, 0)];
    });
    const children = [];
    if (runs.length === 1) {
      const r = runs[0], s = r.summary || r.latest || {}, facts = el("dl", { class: "facts", id: "facts" });
      const which = r.summary ? "best epoch" : "last epoch", perplexity = s.best_test_perplexity ?? s.test_perplexity;
      for (const [name, text] of [["State", r.state], ["Test accuracy, " + which, fixed(s.best_test_accuracy ?? r.test_accuracy, 4)],
        ["Test loss, " + which, fixed(s.best_test_loss ?? r.test_loss, 4)], ...(known(perplexity) ? [["Test perplexity, " + which, fixed(perplexity, 3)]] : []),
        ["Steps", number(r.steps)], ["Parameters", number(s.parameter_count ?? r.start?.parameter_count)],
        ["Training time", seconds(s.train_seconds)], ["Samples per second", number(s.samples_per_second, 0)], ...(known(s.tokens_per_second) ? [["Tokens per second", number(s.tokens_per_second, 0)]] : []),
        ["Ranks", `${number(r.ranks)} (${r.strategy || "–"})`]])
        facts.append(el("div", {}, el("dt", {}, name), el("dd", {}, text)));
      children.push(facts);
    }
    children.push(table(names.map((text, i) => ({ text, n: i >= 5 })), rows, { id: "summary-table", caption: "Summary of the runs" }));
    section("summary", "Summary", ...children);
  }

  // Metrics of epochs besides loss and accuracy.
  const metrics = () => [...new Set(runs.flatMap((r) => Object.keys(r.epochs_table)).map((k) => /^(?:train|test)_(.*)$/.exec(k)?.[1]))].filter((m) => m && m !== "loss" && m !== "accuracy");
  function showCurves() {
    const points = (table, column) => table[column]?.filter(known).length ?? 0;
    // Of steps, or of epochs where steps make no line: they have events every `log_every` of them.
    const of = (column) => runs.map((r, run) => {
      const table = points(r.steps_table, column) < Math.min(2, points(r.epochs_table, column)) ? r.epochs_table : r.steps_table;
      return { run, column, table: { ...table, steps_per_epoch: r.steps_per_epoch } };
    }).filter((s) => points(s.table, column));
    const wanted = [
      ["chart-loss", "Training loss", of("train_loss"), true], ["chart-test-loss", "Test loss", of("test_loss"), false],
      ["chart-accuracy", "Training accuracy", of("train_accuracy"), true], ["chart-test-accuracy", "Test accuracy", of("test_accuracy"), false],
      ...metrics().flatMap((m) => [["chart-train-" + m, "Training " + m, of("train_" + m), true], ["chart-test-" + m, "Test " + m, of("test_" + m), false]]),
      ["chart-rate", "Samples per second", of("samples_per_second"), true], ["chart-lr", "Learning rate", of("lr"), false],
      ["chart-norm", "Norm of the gradient", of("gradient_norm"), true],
    ].filter((c) => c[2].length);
    if (!wanted.length) return;
    if (document.getElementById("curves")) {
      updateCurves(wanted);
      return;
    }
    const axis = el("select", { id: "axis" }, ...Object.entries(axes).map(([value, text]) => el("option", { value }, text)));
    const smooth = el("input", { type: "range", id: "smooth", min: "0", max: "0.98", step: "0.02", value: "0" });
    const all = el("button", { type: "button" }, "Show all");
    const controls = el("div", { class: "controls" }, el("label", {}, "By ", axis), el("label", {}, "Smooth ", smooth), all,
      el("span", { id: "shown" }));
    axis.addEventListener("change", () => { view.axis = axis.value; redraw(); });
    smooth.addEventListener("input", () => { view.smooth = Number(smooth.value); redraw(); });
    all.addEventListener("click", redraw);
    section("curves", "Curves", el("p", { class: "hint" }, "Drag across a chart to zoom, double-click or Escape to see all of it."), controls,
      el("div", { class: "charts", id: "charts" }), el("div", { id: "more" }));
    showBoxes();
    updateCurves(wanted);
  }
  const redraw = () => charts.forEach((c) => c.reset());
  // Which runs are in the charts.
  function showBoxes() {
    const boxes = runs.length < 2 ? [] : runs.map((r, i) => {
      const box = el("input", { type: "checkbox", checked: "" });
      box.addEventListener("change", () => { if (box.checked) hidden.delete(i); else hidden.add(i); redraw(); });
      return el("label", {}, box, runKey(i), r.name);
    });
    document.getElementById("shown")?.replaceChildren(...boxes);
  }
  // Charts keep their zoom; those whose numbers have come since are added.
  function updateCurves(wanted) {
    const holder = document.getElementById("charts"), cut = runs.filter((r) => r.points_of > r.points);
    wanted.forEach(([id, title, sources, smoothing], i) => {
      if (charts.has(id)) charts.get(id).update(sources);
      else holder.insertBefore(chart(id, title, sources, { smooth: smoothing }),
        wanted.slice(i + 1).map((w) => charts.get(w[0])?.figure).find(Boolean) ?? null);
    });
    for (const [id, c] of [...charts])
      if (!wanted.some((w) => w[0] === id)) { c.figure.remove(); charts.delete(id); }
    morph(document.getElementById("more"), el("div", { id: "more" },
      ...cut.map((r) => el("p", { class: "note" }, `${r.name}: ${number(r.points)} of ${number(r.points_of)} points; of each span those with the lowest and the highest loss.`)),
      epochTable()));
  }
  // The same numbers for those who read rather than look.
  function epochTable() {
    const columns = ["loss", "accuracy", ...metrics()].flatMap((m) => ["train_" + m, "test_" + m]).filter((c) => runs.some((r) => r.epochs_table[c]));
    const head = ["run", "epoch", "step", ...columns.map((c) => c.replace("_", " "))].map((text, i) => ({ text, n: i > 0 }));
    const rows = [];
    runs.forEach((r) => {
      const t = r.epochs_table, n = (t.step || []).length, stride = Math.ceil(n / 50) || 1;
      for (let i = 0; i < n; i++)
        if (i % stride === 0 || i === n - 1)
          rows.push([r.name, number(t.epoch[i] + 1), number(t.step[i]), ...columns.map((c) => fixed(t[c]?.[i], 4))]);
    });
    return rows.length ? el("details", {}, el("summary", {}, "Epochs as a table"), table(head, rows, { id: "epochs", caption: "Epochs" })) : null;
  }

  function bar(parts, total) {
    const line = el("div", { class: "bar", role: "img", "aria-label": parts.map((p) => `${p.name} ${percent(p.value / total)}`).join(", ") });
    parts.forEach((p, i) => {
      const piece = el("span", { title: `${p.name}: ${percent(p.value / total)}` });
      piece.style.background = colour(p.colour ?? i);
      piece.style.width = 100 * p.value / total + "%";
      line.append(piece);
    });
    return line;
  }
  function showTime() {
    const rows = el("div", { class: "bars", id: "time-bars" }), numbers = [];
    const add = (label, compute, sync, wait, total, unit) => {
      const rest = Math.max(0, total - compute - sync - wait);
      const parts = [{ name: "compute", value: compute }, { name: "synchronization and waiting for ranks", value: sync },
        { name: "waiting for data", value: wait }, { name: "other", value: rest, colour: 4 }];
      rows.append(el("span", {}, label), bar(parts, total), el("span", {}, unit(total)));
      numbers.push([label, percent(compute / total), percent(sync / total), percent(wait / total), percent(rest / total), unit(total)]);
    };
    runs.forEach((r) => {
      const s = r.summary || r.latest || {};
      if (known(s.train_seconds) && s.train_seconds > 0)
        add(`${r.name}, rank 0`, s.compute_seconds || 0, s.sync_seconds || 0, s.data_wait_seconds || 0, s.train_seconds, seconds);
      for (const rank of r.profile?.per_rank || []) {
        const part = (test) => rank.rows.filter(test).reduce((sum, row) => sum + row.time_us, 0);
        const wait = part((row) => row.name === "wait for data");
        const sync = part((row) => row.pass === "none" && /gradient|ranks|strategy/.test(row.name));
        add(`${r.name}, rank ${rank.rank}, a step`, rank.kernels_us, sync, wait, rank.step_us, (us) => number(us / 1000, 2) + " ms");
      }
    });
    if (!numbers.length) return;
    const legend = el("div", { class: "legend" }, ...["compute", "synchronization and waiting for ranks", "waiting for data", "other"].map((name, i) => el("span", {}, key([0, 1, 2, 4][i]), name)));
    section("time", "Where the time went", legend, rows,
      table([{ text: "" }, ...["compute", "synchronization", "data", "other", "time"].map((text) => ({ text, n: true }))], numbers, { id: "time-table", caption: "Shares of the time" }));
  }

  // What each rank of a running run was doing when it was looked at, in the last half minute.
  const doings = ["computing", "waiting for ranks", "reading data", "evaluating", "saving", "starting or ending"];
  function showRanks() {
    const now = runs.filter((r) => r.state === "running" && r.now?.ranks?.length);
    if (!now.length) {
      document.getElementById("ranks")?.parentNode.remove();
      return;
    }
    const rows = el("div", { class: "bars", id: "rank-bars" });
    for (const r of now)
      for (const rank of r.now.ranks) {
        const total = rank.seen.reduce((a, b) => a + b, 0) || 1;
        rows.append(el("span", {}, (runs.length > 1 ? r.name + ", " : "") + `rank ${rank.rank}`),
          bar(rank.seen.map((value, i) => ({ name: doings[i], value })).filter((p) => p.value).map((p) => ({ ...p, colour: doings.indexOf(p.name) })), total),
          el("span", {}, percent(rank.seen[0] / total) + " computing"));
      }
    const seen = doings.map((_, i) => i).filter((i) => now.some((r) => r.now.ranks.some((k) => k.seen[i])));
    section("ranks", "Ranks", el("p", {}, "What ranks were doing in the last half minute, looked at several times a second."),
      el("div", { class: "legend" }, ...seen.map((i) => el("span", {}, key(i), doings[i]))), rows);
  }

  const className = (r, c) => r.classes?.[c] ?? String(c);
  function showConfusion() {
    for (const r of runs) {
      const c = r.evaluation?.confusion;
      if (!c) continue;
      const n = c.length, most = Math.max(...c.map((row, i) => Math.max(...row.filter((_, k) => k !== i), 0)), 1);
      const children = [el("p", {}, `${number(c.flat().reduce((a, b) => a + b, 0))} test samples of ${r.name}; rows are labels, columns predictions.`)];
      if (n <= 30) {
        const head = el("tr", {}, el("td", {}), ...c.map((_, k) => el("th", { scope: "col" }, className(r, k))), el("th", { scope: "col" }, "accuracy"));
        const body = c.map((row, i) => {
          const all = row.reduce((a, b) => a + b, 0);
          return el("tr", {}, el("th", { scope: "row" }, className(r, i)), ...row.map((v, k) => {
            const cell = el("td", { class: i === k ? "hit" : null }, v ? number(v) : "");
            if (v && i !== k) cell.style.background = `color-mix(in srgb, var(--bad) ${Math.round(8 + 62 * v / most)}%, transparent)`;
            if (v && i === k) cell.style.background = "color-mix(in srgb, var(--good) 22%, transparent)";
            return cell;
          }), el("td", {}, all ? percent(row[i] / all) : "–"));
        });
        children.push(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix" },
          el("table", { class: "matrix" }, el("caption", { class: "hidden" }, "Confusion matrix"), el("thead", {}, head), el("tbody", {}, ...body))));
      }
      const pairs = [];
      c.forEach((row, i) => row.forEach((v, k) => { if (v && i !== k) pairs.push([className(r, i), className(r, k), v]); }));
      pairs.sort((a, b) => b[2] - a[2]);
      if (pairs.length)
        children.push(el("h3", {}, "Most often confused"), table([{ text: "label" }, { text: "predicted" }, { text: "samples", n: true }],
          pairs.slice(0, 10).map((p) => [p[0], p[1], number(p[2])]), { caption: "Most often confused" }));
      section("confusion-" + runs.indexOf(r), runs.length > 1 ? `Confusion: ${r.name}` : "Confusion", ...children);
    }
  }

  function showSamples() {
    for (const r of runs) {
      const worst = r.evaluation?.worst;
      if (!worst?.length) continue;
      const list = el("div", { class: "samples" });
      for (const s of worst)
        list.append(el("figure", {}, s.image ? el("img", { src: "data:image/jpeg;base64," + s.image, alt: `Test sample ${s.sample}, label ${className(r, s.label)}` }) : null,
          el("figcaption", {}, el("div", { class: "right" }, "label " + className(r, s.label)),
            el("div", { class: s.predicted === s.label ? "right" : "wrong" }, `predicted ${className(r, s.predicted)}, ${percent(s.probability)}`),
            el("div", {}, `sample ${number(s.sample)}, loss ${number(s.loss, 2)}`))));
      section("worst-" + runs.indexOf(r), runs.length > 1 ? `Worst samples: ${r.name}` : "Worst samples", el("p", {}, "Those of the test split with the highest loss."), list);
    }
  }

  function showLayers() {
    for (const r of runs) {
      const rank = r.profile?.per_rank?.[0], tensors = r.tensors || [];
      if (!rank && !tensors.length) continue;
      const layers = new Map();
      const layer = (name) => layers.get(name) || layers.set(name, { op: "", parameters: 0, flops: 0, time: 0, kernel: "" }).get(name);
      for (const row of rank?.rows || []) {
        if (!row.op) continue;
        const l = layer(row.name);
        l.op = row.op; l.flops += row.flops; l.time += row.time_us;
        if (row.pass === "forward") { l.kernel = `${row.backend} ${row.kernel}`; l.shape = row.shape; }
      }
      for (const node of rank ? [] : r.graph || []) Object.assign(layer(node.name), { op: node.op, shape: node.shape });
      for (const t of tensors) {
        const dot = t.name.lastIndexOf(".");
        layer(dot < 0 ? t.name : t.name.slice(0, dot)).parameters += t.elements;
      }
      const total = [...layers.values()].reduce((sum, l) => sum + l.time, 0);
      const head = [{ text: "layer" }, { text: "operator" }, { text: "output" }, ...["parameters and statistics", "MFLOP a step", "time a step", "share"].map((text) => ({ text, n: true })), { text: "kernel, forward" }];
      const rows = [...layers].map(([name, l]) => [name, l.op || "–", l.shape ? l.shape.slice(1).join("\u00a0×\u00a0") || "1" : "–", number(l.parameters), rank ? fixed(l.flops / 1e6, 2) : "–",
        l.time ? number(l.time / 1000, 3) + " ms" : "–", l.time ? percent(l.time / total) : "–", l.kernel || "–"]);
      rows.push(["all", "", "", number([...layers.values()].reduce((s, l) => s + l.parameters, 0)), rank ? number([...layers.values()].reduce((s, l) => s + l.flops, 0) / 1e6, 2) : "–", rank ? number(total / 1000, 3) + " ms" : "–", "", ""]);
      section("layers-" + runs.indexOf(r), runs.length > 1 ? `Layers: ${r.name}` : "Layers",
        el("p", {}, rank ? "Forward and backward together, rank 0, on its part of the batch." : "Operations and times are there for runs with --profile."), table(head, rows, { caption: "Layers" }));
    }
  }

  function showCommunication() {
    const rows = runs.filter((r) => r.summary).map((r) => {
      const s = r.summary;
      return [r.name, s.transport, s.strategy, bytes(s.bytes_sent), bytes(s.steps ? s.bytes_sent / s.steps : NaN), bytes(s.train_seconds ? s.bytes_sent / s.train_seconds : NaN) + "/s",
        percent(s.sync_seconds / s.train_seconds), known(s.gradient_bytes?.[0]) && s.gradient_bytes[1] ? number(s.gradient_bytes[0] / s.gradient_bytes[1], 1) + " : 1" : "–"];
    });
    if (rows.length)
      section("communication", "Communication", el("p", {}, "What rank 0 has put on the transport, and how much of its time was in the strategy, waiting for other ranks included."),
        table([{ text: "run" }, { text: "transport" }, { text: "strategy" }, ...["sent", "a step", "rate", "share of the time", "compression"].map((text) => ({ text, n: true }))], rows, { caption: "Communication" }));
  }

  // Checkpoints are those in their folder, without a time: each follows the last event of a step before it.
  function inOrder(events) {
    const list = events.filter((e) => e.event !== "checkpoint");
    for (const c of events.filter((e) => e.event === "checkpoint"))
      list.splice(list.findLastIndex((e) => e.step <= c.step && e.event !== "end") + 1, 0, c);
    return list;
  }
  function showEvents() {
    const rows = [];
    for (const r of runs) for (const e of inOrder(r.events)) rows.push([r.name, e.event, number(e.step), e.text]);
    if (rows.length) section("events", "Events", table([{ text: "run" }, { text: "event" }, { text: "step", n: true }, { text: "" }], rows, { id: "event-table", caption: "Events" }));
  }

  // Keys by runs; where there are many, runs by the keys that differ, and the others once.
  function showConfig() {
    const keys = [...new Set(runs.flatMap((r) => r.config.map(([k]) => k)))];
    const maps = runs.map((r) => new Map(r.config));
    const rows = keys.map((k) => {
      const values = maps.map((m) => m.get(k) ?? "–");
      return { class: values.some((v) => v !== values[0]) ? "differs" : null, cells: [k, ...values], plain: values.every((v) => v === "~") };
    }).filter((row) => !row.plain);
    if (runs.length <= 4)
      return section("config", "Config", runs.length > 1 ? el("p", {}, "Keys that differ are marked.") : null,
        table([{ text: "key" }, ...runs.map((r) => ({ text: r.name }))], rows, { id: "config-table", caption: "Config" }));
    const differ = rows.filter((row) => row.class), same = rows.filter((row) => !row.class);
    return section("config", "Config",
      differ.length ? table([{ text: "run" }, ...differ.map((row) => ({ text: row.cells[0] }))], runs.map((r, i) => [r.name, ...differ.map((row) => row.cells[i + 1])]), { id: "config-differs", caption: "Keys that differ" }) : null,
      el("h3", {}, "The same in all runs"), table([{ text: "key" }, { text: "value" }], same.map((row) => row.cells.slice(0, 2)), { id: "config-table", caption: "Config" }));
  }

  function showEnvironment() {
    const rows = runs.map((r) => [r.name, r.start?.backend ?? "–", r.start?.transport ?? "–", r.start?.precision ?? "–", number(r.start?.batch), number(r.start?.train_samples), number(r.start?.test_samples), r.dir]);
    section("environment", "Environment", table([{ text: "run" }, { text: "backend" }, { text: "transport" }, { text: "precision" }, { text: "batch", n: true }, { text: "training samples", n: true }, { text: "test samples", n: true }, { text: "run directory" }], rows, { caption: "Environment of the runs" }),
      data.live ? null : el("p", {}, `This page was written on ${data.machine || "an unknown machine"} by Cohort ${data.version}.`),
      ...runs.filter((r) => r.evaluation?.missing).map((r) => el("p", { class: "note" }, `${r.name}: no confusion matrix and no samples: ${r.evaluation.missing}`)));
  }

  // ---- all of it, and again when something is new ----

  function showHead() {
    const names = runs.map((r) => r.name), here = data.live?.folder;
    const title = data.compare ? "Comparison of strategies" : names.length === 1 ? names[0] : names.length ? `${names.length} runs` : "No run yet";
    document.title = `${title} – Cohort`;
    document.getElementById("title").textContent = title;
    document.getElementById("subtitle").textContent = [...new Set(runs.map((r) => `${r.model} on ${r.dataset}`))].slice(0, 4).join(", ") +
      (here ? `${runs.length ? "; " : ""}${here}` : `; written ${data.written}`);
    document.getElementById("footer").textContent = `Cohort ${data.version}`;
  }
  const shows = [showHead, showComparison, showByRanks, showStepTimes, showCosts, showSummary, showRanks, showCurves, showTime, showConfusion, showSamples, showLayers, showCommunication, showEvents, showConfig, showEnvironment];
  function showAll() {
    shows.forEach((show, i) => {
      place = i;
      show();
    });
  }
  showAll();
  if (data.live) watch();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));

  function merge(table, more) {
    const before = table.step?.length ?? 0, n = more.step?.length ?? 0;
    for (const name of new Set([...Object.keys(table), ...Object.keys(more)])) {
      const column = table[name] ??= new Array(before).fill(null);
      for (let i = 0; i < n; i++) column.push(more[name]?.[i] ?? null);
    }
  }
  function watch() {
    const line = el("p", { id: "now" }), step = el("span", { id: "now-step" }), how = el("span", { id: "now-state", role: "status" });
    const progress = el("progress", { id: "now-progress", "aria-label": "Progress of the run" });
    let source, waits = false, lost = null;
    line.append(how, " ", step, " ", progress);
    document.getElementById("subtitle").after(line);

    function showNow() {
      const r = runs.length === 1 ? runs[0] : null, of = (state) => runs.filter((run) => run.state === state).length;
      const state = lost ?? (r ? r.damage ?? r.state : ["running", "finished", "stopped"].filter(of).map((s) => `${of(s)} ${s}`).join(", "));
      const at = r?.now?.step ?? r?.steps, total = r?.now?.total_steps ?? r?.total_steps, rate = r?.now?.samples_per_second ?? r?.latest?.samples_per_second;
      const left = r?.state === "running" && r.start?.batch > 0 && rate > 0 && total > at ? (total - at) * r.start.batch / rate : NaN;
      if (how.textContent !== state) how.textContent = state;
      how.className = lost ? "wrong" : r?.damage ? "wrong" : of("running") ? "right" : "";
      step.textContent = !r || !known(at) ? "" : `step ${number(at)}${known(total) ? ` of ${number(total)}` : ""}` +
        (r.state === "running" && known(rate) ? `, ${number(rate, 0)} samples/s` : "") + (known(left) ? `, about ${seconds(Math.round(left))} left` : "");
      progress.hidden = !(known(at) && total > 0);
      if (!progress.hidden) { progress.max = total; progress.value = Math.min(at, total); }
    }
    function draw() {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => { waits = false; showAll(); showNow(); });
    }
    function take(message) {
      for (const { run, append, ...more } of message.runs) {
        const r = runs[run];
        Object.assign(r, more);
        if (append) for (const [name, rows] of Object.entries(append)) merge(r[name], rows);
      }
      draw();
    }
    async function takeAll() {
      const answer = await fetch("data");
      if (!answer.ok) return null;
      const fresh = await answer.json();
      const same = fresh.runs.length === runs.length && fresh.runs.every((r, i) => r.dir === runs[i].dir);
      runs.splice(0, runs.length, ...fresh.runs);
      if (!same) { hidden.clear(); showBoxes(); }
      draw();
      return fresh.live.after;
    }
    function follow(after) {
      source = new EventSource(`events?after=${after}`);
      source.addEventListener("open", () => { lost = null; draw(); });
      source.addEventListener("message", (event) => take(JSON.parse(event.data)));
      source.addEventListener("reset", () => { source.close(); takeAll().then(begin, fail); });
      source.addEventListener("error", () => {
        lost = "not connected; trying again";
        if (source.readyState === EventSource.CLOSED) fail();
        draw();
      });
    }
    // Refused: by a server that was started again, whose address is another one.
    function begin(after) {
      if (after !== null) return follow(after);
      lost = "not connected: `cohort watch` has ended, or was started again and has printed another address";
      draw();
    }
    function fail() {
      lost = "not connected; trying again";
      draw();
      setTimeout(() => takeAll().then(begin, fail), 3000);
    }
    showNow();
    follow(data.live.after);
  }
})();
