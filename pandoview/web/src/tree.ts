// The index as it is: one band for each level, a node as wide as what it stands
// over. Only what is on the screen is fetched, as nodes or as groups of them.

import { ask, type Description, type Found, type Group, type Node, type Strip, type Viewed } from "./api";
import { between, box, byID, colour, count, fitted, onScheme, pen, plural, trouble } from "./dom";
import { showNode } from "./details";

const gap = 26; // above each band, for its name
const margin = 10;

export class TreeView {
  private canvas = byID<HTMLCanvasElement>("tree");
  private lo = 0;
  private hi = 1;
  private last = 1;
  private data?: Viewed;
  private asked = "";
  private abort?: AbortController;
  private timer = 0;
  private picked?: { level: number; node: number };
  private found?: Found;
  private drawn = false;
  private mouse?: MouseEvent; // where it was last, over the picture
  private whole = true; // all of it is to be on the screen, also when it grows

  constructor(private ix: Description) {
    this.last = Math.max(1, ix.levels[ix.levels.length - 1]!.nodes);
    this.hi = this.last;
    this.listen();
    onScheme(() => this.draw());
    new ResizeObserver(() => { this.draw(); this.fetch(); }).observe(this.canvas);
    this.legend();
  }

  private legend(): void {
    byID("legend").innerHTML = `<span><i class="ramp"></i>empty to full</span><span><i class="path"></i>way of the search</span>` +
      `<span><i class="down"></i>where its key is, below</span>` +
      `<span><i class="picked"></i>chosen</span>` + (this.ix.mutable && !this.ix.types ? `<span><i class="untold"></i>split, parent not told yet</span>` : "");
  }

  /** update takes new counts of a tree that changes. */
  update(ix: Description): void {
    this.ix = ix;
    this.resize(ix.levels[ix.levels.length - 1]!.nodes);
    this.asked = "";
    this.fetch();
  }

  /** resize takes note of how many nodes the last level has now. */
  private resize(last: number): void {
    this.last = Math.max(1, last);
    if (this.whole || this.hi > this.last) this.hi = this.last;
    this.lo = this.whole ? 0 : Math.min(this.lo, this.hi - 1);
  }

  // --- what is on the screen

  private go(lo: number, hi: number): void {
    let span = Math.max(1, Math.min(hi - lo, this.last));
    if (this.last <= 1) span = this.last;
    this.lo = Math.max(0, Math.min(lo, this.last - span));
    this.hi = this.lo + span;
    this.whole = this.lo === 0 && this.hi === this.last;
    this.draw();
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.fetch(), 60);
  }

  zoom(factor: number, at = 0.5): void {
    const span = this.hi - this.lo, next = Math.max(1, Math.min(span * factor, this.last));
    const fixed = this.lo + span * at;
    this.go(fixed - next * at, fixed + next * (1 - at));
  }

  pan(part: number): void {
    const by = (this.hi - this.lo) * part;
    this.go(this.lo + by, this.hi + by);
  }

  fit(): void { this.go(0, this.last); }

  private async fetch(): Promise<void> {
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    const span = this.hi - this.lo; // and half as much on either side, so that moving shows something at once
    const lo = Math.max(0, Math.floor(this.lo - span / 2)), hi = Math.min(this.last, Math.ceil(this.hi + span / 2));
    const max = Math.max(16, Math.min(1500, Math.round(width / 4 * (hi - lo) / span)));
    const key = `${lo} ${hi} ${max}`;
    if (key === this.asked) return;
    this.asked = key;
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    try {
      // All of a tree that grows is as much as there is when the server looks.
      this.data = await ask<Viewed>("view", this.whole ? { max } : { lo, hi, max }, abort.signal);
      this.resize(this.data.last);
      trouble(null);
      this.draw();
      this.hover(this.mouse);
    } catch (e) {
      if (!abort.signal.aborted) trouble(e);
    }
  }

  // --- drawing

  private band(level: number, height: number): { y: number; h: number } {
    const n = this.ix.levels.length;
    const each = Math.min(240, (height - margin) / n);
    const above = each < 2 * gap ? Math.min(gap, each / 2) : gap; // many levels share the room
    return { y: margin + level * each + above - 6, h: Math.max(2, each - above) };
  }

  private x(at: number, width: number): number {
    return margin + (at - this.lo) / (this.hi - this.lo) * (width - 2 * margin);
  }

  private draw(): void {
    const { c, w, h } = pen(this.canvas);
    const d = this.data;
    if (!d) return;
    d.levels.forEach((s, level) => {
      const { y, h: high } = this.band(level, h);
      c.fillStyle = colour("muted");
      c.textAlign = "left";
      const shown = s.step > 1 ? `, in groups of ${count(s.step)}` : "";
      c.fillText(`${this.title(level)} · ${plural(s.nodes, "node")}${shown}`, margin, y - Math.min(11, high / 2 + 2));
      c.save();
      c.beginPath();
      c.rect(margin - 3, y - 3, w - 2 * margin + 6, high + 6);
      c.clip();
      const first = s.groups[0], end = s.groups[s.groups.length - 1];
      const mean = first && end ? (this.x(end[1], w) - this.x(first[0], w)) / s.groups.length : 0;
      const named = mean > 44 && s.step === 1 && high >= 16; // all of a level alike
      s.groups.forEach((g, i) => this.drawGroup(c, s, g, i, level, y, high, w, named));
      this.drawWay(c, level, y, high, w);
      c.restore();
    });
    this.note();
  }

  private title(level: number): string { return `level ${level} · ${this.ix.levels[level]?.name ?? ""}`; }

  private drawGroup(c: CanvasRenderingContext2D, s: Strip, g: Group, i: number, level: number, y: number, h: number, width: number, named: boolean): void {
    const x0 = this.x(g[0], width), x1 = this.x(g[1], width);
    if (x1 < 0 || x0 > width) return;
    const space = x1 - x0 > 6 ? 1.5 : x1 - x0 > 3 ? 0.5 : 0;
    const [x, w] = [x0 + space / 2, Math.max(0.75, x1 - x0 - space)];
    const fill = g[3] ? g[2] / g[3] : 0;
    box(c, x, y, w, h);
    c.fillStyle = colour("low");
    c.fill();
    c.save();
    c.clip();
    c.fillStyle = between("low", "high", 0.35 + 0.65 * fill);
    if (named) c.fillRect(x, y + h - 7, w * fill, 7); // a strip leaves the ground for the keys alone
    else c.fillRect(x, y + h * (1 - fill), w, h * fill);
    c.restore();
    this.marks(c, g, s.from + i * s.step, s, level, x, y, w, h);
    if (named) this.label(c, s, i, x, y, w, h - 8);
  }

  /** marks draws what is special about a node: states, side links, the choice. */
  private marks(c: CanvasRenderingContext2D, g: Group, node: number, s: Strip, level: number, x: number, y: number, w: number, h: number): void {
    if (g[4] > 0) {
      c.strokeStyle = colour("bad");
      c.lineWidth = 2;
      c.strokeRect(x + 1, y + 1, Math.max(1, w - 2), h - 2);
    }
    if (g[5] > 0) {
      c.strokeStyle = colour("warn");
      c.setLineDash([4, 3]);
      c.lineWidth = 2;
      c.strokeRect(x + 1, y + 1, Math.max(1, w - 2), h - 2);
      c.setLineDash([]);
    }
    if (this.ix.mutable && !this.ix.types && level === this.ix.levels.length - 1 && s.step === 1 && w > 20 && node + 1 < s.nodes) {
      c.strokeStyle = colour("muted"); // the side link
      c.lineWidth = 1.25;
      const at = y + h - 13, end = x + w + 2;
      c.beginPath();
      c.moveTo(end - 9, at);
      c.lineTo(end, at);
      c.moveTo(end - 3.5, at - 3);
      c.lineTo(end, at);
      c.lineTo(end - 3.5, at + 3);
      c.stroke();
    }
    if (this.picked?.level === level && this.picked.node >= node && this.picked.node < node + s.step) {
      c.strokeStyle = colour("select");
      c.lineWidth = 2.5;
      box(c, x, y, w, h);
      c.stroke();
    }
  }

  private label(c: CanvasRenderingContext2D, s: Strip, i: number, x: number, y: number, w: number, h: number): void {
    const keys = s.keys?.[i];
    const left = Math.max(x, margin) + 5, right = Math.min(x + w, this.canvas.clientWidth - margin) - 5;
    if (right - left < 24) return;
    c.textAlign = "left";
    c.fillStyle = colour("node-ink");
    if (!keys || keys.length === 0) {
      c.fillText(fitted(c, count(s.from + i), right - left), left, y + h / 2);
      return;
    }
    const rows = Math.max(1, Math.floor((h - 6) / 15));
    const least = Math.min(140, Math.max(46, Math.max(...keys.slice(0, 8).map(k => c.measureText(k).width)) + 14));
    const columns = keys.length === 1 ? 1 : Math.max(1, Math.floor((right - left) / least));
    const used = Math.min(columns, Math.ceil(keys.length / rows));
    const each = Math.max(least, Math.min(260, (right - left) / used)); // as wide as there is room for
    const room = rows * columns;
    const more = keys.length > room;
    keys.slice(0, more ? room - 1 : room).forEach((k, n) => {
      const row = n % rows, column = Math.floor(n / rows);
      const at = y + 11 + row * 15;
      c.fillText(fitted(c, k, Math.min(each - 8, right - left - column * each), this.ix.key === "string"), left + column * each, at);
    });
    if (more && room > 1) {
      const at = y + 11 + (rows - 1) * 15;
      c.fillText("…", left + (used - 1) * each, at);
    }
  }

  /** drawWay marks the nodes on the way of the key that was searched for. */
  private drawWay(c: CanvasRenderingContext2D, level: number, y: number, h: number, width: number): void {
    for (const v of this.found?.way ?? []) {
      if (v.level !== level) continue;
      const x0 = this.x(v.first, width), x1 = this.x(v.end, width), w = Math.max(4, x1 - x0);
      c.strokeStyle = colour("path");
      c.lineWidth = 2.5;
      box(c, x0 + (w > 4 ? 1 : -1.5), y, Math.max(3, w - 2), h);
      c.stroke();
      const end = this.found!.way[this.found!.way.length - 1]!;
      const at = this.x(end.first + 0.5, width);
      if (w > 8 && v !== end) {
        c.beginPath();
        c.moveTo(at, y);
        c.lineTo(at, y + h);
        c.setLineDash([3, 3]);
        c.stroke();
        c.setLineDash([]);
      }
    }
  }

  /** note says in words what is on the screen. */
  private note(): void {
    const name = this.ix.levels[this.ix.levels.length - 1]!.name;
    const [lo, hi] = [Math.floor(this.lo), Math.ceil(this.hi)];
    byID("where").textContent = lo === 0 && hi >= this.last ? `all ${plural(this.last, "node")} of the last level` : `${name} ${count(lo)} to ${count(hi - 1)} of ${count(this.last)}`;
    Object.assign(this.canvas.dataset, { lo: String(lo), hi: String(hi), last: String(this.last), drawn: "1" });
    if (!this.drawn) {
      this.drawn = true;
      performance.mark("pando-drawn");
    }
  }

  // --- choosing

  async pick(level: number, node: number, bring = false): Promise<void> {
    this.picked = { level, node };
    try {
      const n = await ask<Node>("node", { level, node });
      if (this.picked?.level !== level || this.picked.node !== node) return;
      showNode(n, this.ix, this.found, (l, i) => void this.pick(l, i, true));
      if (bring) this.bring(n.first, n.end);
      this.canvas.dataset.picked = `${level} ${node}`;
      this.draw();
    } catch (e) {
      trouble(e);
    }
  }

  /** bring moves the view so that a span is on the screen and not too small. */
  private bring(first: number, end: number): void {
    const span = this.hi - this.lo, size = end - first;
    if (first >= this.lo && end <= this.hi && size / span > 0.01) { this.draw(); return; }
    const next = Math.max(Math.min(span, size * 40), size * 1.2, 8);
    const mid = (first + end) / 2;
    this.go(mid - next / 2, mid + next / 2);
  }

  private enter(): void {
    const p = this.picked;
    if (!p) return;
    void ask<Node>("node", { level: p.level, node: p.node }).then(n => this.go(n.first, n.end), trouble);
  }

  private async move(dx: number, dy: number): Promise<void> {
    if (!this.picked) {
      await this.pick(0, 0);
      return;
    }
    const { level, node } = this.picked, levels = this.ix.levels;
    if (dx !== 0) {
      const to = node + dx;
      if (to >= 0 && to < levels[level]!.nodes) await this.pick(level, to, true);
      return;
    }
    const n = await ask<Node>("node", { level, node });
    if (dy > 0 && n.children > 0) await this.pick(level + 1, n.child, true);
    if (dy < 0 && level > 0) {
      const v = await ask<Viewed>("view", { lo: n.first, hi: n.first + 1, max: 1 });
      await this.pick(level - 1, v.levels[level - 1]!.from, true);
    }
  }

  private at(e: MouseEvent): { level: number; node: number } | undefined {
    const r = this.canvas.getBoundingClientRect();
    const [px, py] = [e.clientX - r.left, e.clientY - r.top];
    for (const [level, s] of (this.data?.levels ?? []).entries()) {
      const { y, h } = this.band(level, r.height);
      if (py < y || py > y + h) continue;
      const i = s.groups.findIndex(g => px >= this.x(g[0], r.width) && px < this.x(g[1], r.width));
      if (i < 0) return undefined;
      const g = s.groups[i]!, part = (px - this.x(g[0], r.width)) / Math.max(1e-9, this.x(g[1], r.width) - this.x(g[0], r.width));
      return { level, node: Math.min(s.nodes - 1, s.from + i * s.step + Math.floor(part * s.step)) };
    }
    return undefined;
  }

  /** hover says in a line what is under the mouse; nothing needs to be asked for that. */
  private hover(e?: MouseEvent): void {
    this.mouse = e;
    const tip = byID("hover"), hit = e && this.at(e);
    tip.hidden = !hit;
    if (!e || !hit) return;
    const s = this.data!.levels[hit.level]!, i = Math.floor((hit.node - s.from) / s.step), g = s.groups[i]!;
    const full = g[3] ? `, ${Math.round(100 * g[2] / g[3])}% full` : "";
    const what = s.step > 1 ? `about node ${count(hit.node)}, in a group of ${count(s.step)}` : `node ${count(hit.node)}`;
    const key = s.keys?.[i]?.[0];
    tip.textContent = `${this.title(hit.level)} · ${what}${full}${key === undefined ? "" : ` · from ${key}`}`;
    tip.style.left = `${Math.min(e.clientX + 12, window.innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${e.clientY + 18}px`;
  }

  private listen(): void {
    const canvas = this.canvas;
    let from: { x: number; lo: number; hi: number; moved: boolean } | undefined;
    canvas.addEventListener("pointerdown", e => {
      canvas.setPointerCapture(e.pointerId);
      from = { x: e.clientX, lo: this.lo, hi: this.hi, moved: false };
    });
    canvas.addEventListener("pointerleave", () => this.hover());
    canvas.addEventListener("pointermove", e => {
      if (!from) { this.hover(e); return; }
      this.hover();
      const by = (from.x - e.clientX) / (canvas.clientWidth - 2 * margin) * (from.hi - from.lo);
      if (Math.abs(e.clientX - from.x) > 3) from.moved = true;
      if (from.moved) this.go(from.lo + by, from.hi + by);
    });
    canvas.addEventListener("pointerup", e => {
      const hit = from && !from.moved ? this.at(e) : undefined;
      from = undefined;
      if (hit) void this.pick(hit.level, hit.node);
    });
    canvas.addEventListener("dblclick", () => this.enter());
    canvas.addEventListener("wheel", e => {
      e.preventDefault();
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { this.pan(e.deltaX / 800); return; }
      this.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 240))), (e.offsetX - margin) / (canvas.clientWidth - 2 * margin));
    }, { passive: false });
    byID("zoom-in").onclick = () => this.zoom(0.5);
    byID("zoom-out").onclick = () => this.zoom(2);
    byID("fit").onclick = () => this.fit();
  }

  /** key handles a key, and reports whether it did. */
  key(e: KeyboardEvent): boolean {
    const moves: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const m = moves[e.key];
    if (m) { void this.move(...m).catch(trouble); return true; }
    switch (e.key) {
      case "+": case "=": this.zoom(0.5); return true;
      case "-": this.zoom(2); return true;
      case "0": case "Home": this.fit(); return true;
      case "a": this.pan(-0.25); return true;
      case "d": this.pan(0.25); return true;
      case "Enter": this.enter(); return true;
    }
    return false;
  }

  /** way shows the way of a search, and goes to its end. */
  way(f: Found | undefined): void {
    this.found = f;
    const end = f?.way[f.way.length - 1];
    if (end) {
      void this.pick(end.level, end.node);
      this.bring(end.first, end.end);
    }
    this.draw();
  }
}
