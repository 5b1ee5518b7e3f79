// Draws the page's line plots, filters its list of figures, and opens the table
// that a link leads to. Checked by "npm run check" in this folder.
// @ts-check
(() => {
  "use strict";

  /**
   * A plot as report/panel.go describes it.
   * @typedef {{name: string, style: string, dashed?: boolean, points: [number, number][]}} Line
   * @typedef {{id: string, title: string, xLabel: string, yLabel: string, logX: boolean, logY: boolean,
   *   sizes: boolean, ticks?: string[], lines: Line[]}} Panel
   */

  /** @param {string} id */
  const byID = (id) => document.getElementById(id);

  /** @type {Panel[]} */
  const panels = JSON.parse(byID("panels")?.textContent || "[]") || [];

  /** A number with three digits or so. @param {number | null | undefined} v */
  const digits = (v) => {
    if (v === null || v === undefined) return "–";
    const a = Math.abs(v);
    if (a === 0 || a >= 100) return v.toFixed(0);
    return v.toFixed(a >= 10 ? 1 : a >= 0.1 ? 2 : 4);
  };

  /** 67108864 is 64M: the letters are powers of two. @param {number} n */
  const size = (n) => {
    for (const [shift, letter] of /** @type {[number, string][]} */ ([[30, "G"], [20, "M"], [10, "k"]])) {
      if (n >= 2 ** shift) return `${+(n / 2 ** shift).toFixed(2)}${letter}`;
    }
    return String(n);
  };

  /** @param {Panel} p @param {number | null | undefined} x */
  const place = (p, x) => {
    if (x === null || x === undefined) return "–";
    if (p.ticks) return p.ticks[x] ?? "";
    return p.sizes ? size(x) : digits(x);
  };

  /** All x of a panel's lines, and for each line its y there. @param {Panel} p */
  const columns = (p) => {
    const xs = [...new Set(p.lines.flatMap((l) => l.points.map((q) => q[0])))].sort((a, b) => a - b);
    const ys = p.lines.map((l) => {
      const at = new Map(l.points);
      return xs.map((x) => at.get(x) ?? null);
    });
    return /** @type {uPlot.AlignedData} */ ([xs, ...ys]);
  };

  /** The colour of a system in the scheme that is on. @param {string} style */
  const colour = (style) => {
    const probe = document.createElement("i");
    probe.className = style;
    document.body.append(probe);
    const c = getComputedStyle(probe).getPropertyValue("--c").trim();
    probe.remove();
    return c;
  };

  /** @param {string} name */
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** Leaves out names that would touch the one before. @param {uPlot} u @param {number[]} splits */
  const apart = (u, splits) => {
    let last = -Infinity;
    return splits.map((x) => {
      const at = u.valToPos(x, "x");
      if (at - last < 38) return null;
      last = at;
      return x;
    });
  };

  /** @param {Panel} p @param {number} width @returns {uPlot.Options} */
  const options = (p, width) => {
    const soft = variable("--soft"), rule = variable("--rule");
    const font = "12px system-ui, sans-serif";
    const xs = columns(p)[0], few = xs.length <= 16;
    return {
      width, height: 300, cursor: { points: { size: 8 } }, legend: { live: true, markers: { fill: (_, i) => i > 0 ? colour(p.lines[i - 1].style) : "transparent" } },
      scales: {
        x: { time: false, distr: p.logX ? 3 : 1, log: few ? 2 : 10,
          range: (_, lo, hi) => p.logX ? [lo / 1.15, hi * 1.15] : [lo - 0.2, hi + 0.2] },
        y: { distr: p.logY ? 3 : 1, range: p.logY ? undefined : (_, __, hi) => [0, hi > 0 ? hi * 1.08 : 1] },
      },
      axes: [
        { label: p.xLabel, labelFont: font, font, stroke: soft, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 }, labelSize: 22,
          splits: few ? () => Array.from(xs) : undefined,
          filter: few ? apart : undefined,
          values: (_, splits) => splits.map((x) => x === null ? "" : place(p, x)) },
        { label: p.yLabel, labelFont: font, font, stroke: soft, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 }, size: 56, labelSize: 22,
          values: (_, splits) => splits.map((y) => y === null ? "" : digits(y)) },
      ],
      series: [
        { label: p.xLabel || "x", value: (_, x) => place(p, x) },
        ...p.lines.map((l) => ({
          label: l.name, stroke: colour(l.style), width: 2, spanGaps: true, points: { show: true, size: 6, fill: colour(l.style) },
          dash: l.dashed ? [6, 4] : undefined,
          value: (/** @type {uPlot} */ _, /** @type {number | null} */ y) => digits(y),
        })),
      ],
    };
  };

  /** @type {Map<HTMLElement, uPlot>} */
  const drawn = new Map();

  /** Draws a plot, anew if it is there. @param {HTMLElement} box */
  const draw = (box) => {
    const p = panels.find((q) => q.id === box.dataset.panel);
    if (!p) return;
    drawn.get(box)?.destroy();
    drawn.set(box, new uPlot(options(p, box.clientWidth), columns(p), box));
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${p.yLabel} by ${p.xLabel}: ${p.lines.map((l) => l.name).join("; ")}`);
  };

  // A plot is drawn when it comes near the screen: there may be hundreds.
  const near = new IntersectionObserver((entries) => {
    for (const e of entries) {
      if (e.isIntersecting && e.target instanceof HTMLElement && !drawn.has(e.target)) draw(e.target);
    }
  }, { rootMargin: "600px" });
  const resized = new ResizeObserver((entries) => {
    for (const e of entries) {
      if (e.target instanceof HTMLElement) drawn.get(e.target)?.setSize({ width: e.target.clientWidth, height: 300 });
    }
  });
  for (const box of document.querySelectorAll(".plot")) {
    near.observe(box);
    resized.observe(box);
  }
  const drawAll = () => { for (const box of document.querySelectorAll(".plot")) if (box instanceof HTMLElement) draw(box); };
  if (location.search === "?all") drawAll(); // for pictures of the whole page
  const redraw = () => { for (const box of drawn.keys()) draw(box); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", drawAll);

  /** One button a state, above the list of figures. */
  const addFilter = () => {
    const bar = byID("filter");
    const rows = [...document.querySelectorAll("tr[data-state]")].filter((r) => r instanceof HTMLTableRowElement);
    if (!bar) return;
    const states = ["all", ...new Set(rows.map((r) => r.dataset.state || ""))];
    for (const state of states) {
      const b = document.createElement("button");
      b.type = "button";
      b.textContent = state;
      b.setAttribute("aria-pressed", String(state === "all"));
      b.addEventListener("click", () => {
        for (const other of bar.children) other.setAttribute("aria-pressed", String(other === b));
        for (const r of rows) r.hidden = state !== "all" && r.dataset.state !== state;
      });
      bar.append(b);
    }
    bar.hidden = false;
  };
  addFilter();

  const openTarget = () => {
    const target = byID(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", openTarget);
  openTarget();
})();
