// A kernel on the interpreter, step by step: which node each lane is at, who waits,
// and whose turn the seed says it is.

import type { KernelSteps } from "./api";
import { between, box, colour, count, el, fitted, pen, plural } from "./dom";
import { events, type Stage } from "./player";

interface Lane { level: number; node: number; again: boolean; what: string; query: number }

const doing: Record<string, string> = {
  queries: "read the keys they are to look for",
  node: "read a node",
  places: "read or write where their queries have come to",
  answers: "write answers",
  strings: "compare whole strings",
  other: "access other memory",
};

export class KernelStage implements Stage {
  readonly element: HTMLElement;
  private canvas = el("canvas", { role: "img", "aria-label": "Lanes and the nodes they are at" });
  private says = el("p", { class: "says", "aria-live": "polite" });
  private list = el("ol", { class: "events", "aria-label": "Steps" });
  private warps: string[] = []; // those that do something, as "block warp"
  private lanes = new Map<string, Lane[]>();
  private retries = 0;
  private built = -1;
  private at = 0;

  constructor(private rec: KernelSteps, private go: (step: number) => void) {
    for (const s of rec.steps) if (!this.warps.includes(`${s.block} ${s.warp}`)) this.warps.push(`${s.block} ${s.warp}`);
    this.warps.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const more = rec.dropped ? ` ${count(rec.dropped)} more were left out.` : "";
    this.element = el("section", { "data-seed": String(rec.seed) },
      el("p", {}, el("b", {}, `Seed ${rec.seed}`), el("span", { class: "muted" },
        ` · ${rec.names.join(", ")} · ${plural(rec.keys.length, "query", "queries")} · ${count(rec.work)} instructions in ${count(rec.turns.length)} turns · ${rec.note}${more}`)),
      this.says, this.canvas, this.list);
  }

  get length(): number { return Math.max(1, this.rec.steps.length); }

  nextSplit(): number { return -1; }

  private build(step: number): void {
    if (step < this.built) { this.lanes.clear(); this.built = -1; this.retries = 0; }
    for (let i = this.built + 1; i <= step; i++) {
      const s = this.rec.steps[i];
      if (!s) break;
      const id = `${s.block} ${s.warp}`;
      const row = this.lanes.get(id) ?? [];
      for (const [lane, level, node, again] of s.lanes) {
        const was = row[lane];
        if (s.what === "node") row[lane] = { level, node, again: again === 1, what: s.what, query: -1 };
        else row[lane] = { level: was?.level ?? -1, node: was?.node ?? -1, again: false, what: s.what, query: node };
        this.retries += again;
      }
      this.lanes.set(id, row);
    }
    this.built = step;
  }

  private line(i: number): [string, string] {
    const s = this.rec.steps[i];
    if (!s) return ["", "nothing happened"];
    const at = new Set(s.lanes.map(l => `${l[1]} ${l[2]}`));
    const level = s.lanes[0]?.[1] ?? -1;
    const where = s.what === "node" ? `${plural(at.size, "node")} of level ${level} (${this.rec.levels[level]?.name ?? ""})` : doing[s.what] ?? s.what;
    return [s.what, `block ${s.block} warp ${s.warp}: ${plural(s.lanes.length, "lane")} ${s.what === "node" ? "read " : ""}${where}`];
  }

  show(step: number): void {
    this.at = step;
    this.build(step);
    const s = this.rec.steps[step];
    this.element.dataset.step = s?.what ?? "";
    this.says.textContent = s
      ? `Turn ${count(s.turn + 1)}: ${this.line(step)[1]}. Line ${s.line} of the PTX.${this.retries ? ` ${plural(this.retries, "retry", "retries")} so far.` : ""}`
      : "The kernel has touched no memory.";
    events(this.list, this.length, step, i => this.line(i), this.go);
    this.draw();
  }

  private draw(): void {
    const { c, w, h } = pen(this.canvas);
    if (w === 0) return;
    const left = 124, strip = 34;
    const rows = Math.max(1, this.warps.length), cell = Math.min((w - left - 12) / 32, 44);
    const high = Math.max(14, Math.min(34, (h * 0.45) / rows - 10));
    c.fillStyle = colour("muted");
    c.textAlign = "left";
    c.fillText("lanes: the stronger the colour the deeper; the number is the node of a tile; a stroke: waits", left, 12);
    this.warps.forEach((id, r) => this.warpRow(c, id, left, 26 + r * (high + 12), cell, high));
    const y = 26 + rows * (high + 12) + 16;
    this.treeRows(c, left, y, w - left - 12, h - y - strip - 34);
    this.schedule(c, left, h - strip, w - left - 12, strip - 12);
  }

  /** warpRow draws the lanes of a warp; lanes of a tile are at one node and have one line below them. */
  private warpRow(c: CanvasRenderingContext2D, id: string, x: number, y: number, cell: number, h: number): void {
    const s = this.rec.steps[this.at];
    const [block, warp] = id.split(" ");
    const turn = s ? this.rec.turns[s.turn] : undefined;
    const waiting = turn && `${turn[0]} ${turn[1]}` === id ? turn[3] : 0;
    const now = s && `${s.block} ${s.warp}` === id ? new Set(s.lanes.map(l => l[0])) : new Set<number>();
    c.textAlign = "left";
    c.fillStyle = now.size ? colour("ink") : colour("muted");
    c.fillText(`block ${block} · ${warp}`, 8, y + h / 2);
    const row = this.lanes.get(id) ?? [];
    for (let i = 0; i < 32; i++) {
      const l = row[i];
      const px = x + i * cell, wide = cell - 2;
      box(c, px, y, wide, h);
      c.fillStyle = !l || l.level < 0 ? colour("wait") : this.shade(l.level);
      c.fill();
      if (waiting >>> i & 1) {
        c.strokeStyle = colour("muted");
        c.lineWidth = 1;
        c.beginPath();
        c.moveTo(px, y + h);
        c.lineTo(px + wide, y);
        c.stroke();
      }
      if (now.has(i)) {
        c.strokeStyle = l?.again ? colour("bad") : colour("path");
        c.lineWidth = 2;
        box(c, px, y, wide, h);
        c.stroke();
      }
    }
    this.tiles(c, row, x, y, h, cell);
  }

  /** tiles draws a line below lanes that are at one node, and the node's number. */
  private tiles(c: CanvasRenderingContext2D, row: Lane[], x: number, y: number, h: number, cell: number): void {
    c.strokeStyle = colour("muted");
    c.lineWidth = 1.5;
    for (let i = 0; i < 32;) {
      let end = i + 1;
      const at = row[i];
      while (at && at.node >= 0 && end < 32 && row[end]?.node === at.node && row[end]?.level === at.level) end++;
      if (at && at.node >= 0) {
        c.beginPath();
        c.moveTo(x + i * cell + 2, y + h + 4);
        c.lineTo(x + end * cell - 4, y + h + 4);
        c.stroke();
        c.textAlign = "center";
        const text = count(at.node), wide = c.measureText(text).width, mid = x + (i + end) / 2 * cell - 1;
        if (wide < (end - i) * cell - 4) {
          if (end - i > 1) { // over the gaps between lanes
            c.fillStyle = this.shade(at.level);
            c.fillRect(mid - wide / 2 - 3, y + 3, wide + 6, h - 6);
          }
          c.fillStyle = at.level >= this.rec.levels.length / 2 ? colour("node-ink-full") : colour("node-ink");
          c.fillText(text, mid, y + h / 2);
        }
      }
      i = end;
    }
  }

  private shade(level: number): string { return between("low", "high", (level + 0.3) / this.rec.levels.length); }

  /** treeRows draws the levels of the tree, and a mark wherever a lane is. */
  private treeRows(c: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
    const n = this.rec.levels.length, each = Math.min(64, h / n);
    if (each < 8) return;
    const s = this.rec.steps[this.at];
    this.rec.levels.forEach((l, level) => {
      const top = y + level * each, high = Math.min(28, each - 6);
      c.textAlign = "left";
      c.fillStyle = colour("muted");
      c.fillText(fitted(c, `${l.name} · ${count(l.nodes)}`, x - 12), 8, top + high / 2);
      c.fillStyle = colour("panel");
      c.strokeStyle = colour("line");
      c.lineWidth = 1;
      box(c, x, top, w, high);
      c.fill();
      c.stroke();
      const wide = Math.max(3, w / l.nodes);
      for (const [id, row] of this.lanes) for (const lane of row) {
        if (lane?.level !== level) continue;
        const now = s && `${s.block} ${s.warp}` === id;
        c.fillStyle = now ? colour("path") : colour("high");
        c.fillRect(x + Math.min(w - wide, w * lane.node / l.nodes), top + 1, wide, high - 2);
      }
    });
  }

  /** schedule draws whose turn it was, one after the other, around the present. */
  private schedule(c: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
    const s = this.rec.steps[this.at], turns = this.rec.turns;
    c.textAlign = "left";
    c.fillStyle = colour("muted");
    c.fillText("turns", 8, y + h / 2 - 4);
    if (!s || turns.length === 0) return;
    const each = Math.max(2, Math.min(14, w / turns.length)), room = Math.floor(w / each);
    const from = Math.max(0, Math.min(s.turn - (room >> 1), turns.length - room));
    for (let i = from; i < Math.min(turns.length, from + room); i++) {
      const t = turns[i]!;
      const which = Math.max(0, this.warps.indexOf(`${t[0]} ${t[1]}`)) % 8;
      let lanes = 0;
      for (let b = t[2]; b; b &= b - 1) lanes++;
      const high = Math.max(2, h * lanes / 32);
      c.fillStyle = colour(`w${which}`);
      c.fillRect(x + (i - from) * each, y + h - high - 4, Math.max(1, each - 1), high);
    }
    c.strokeStyle = colour("path");
    c.lineWidth = 2;
    c.strokeRect(x + (s.turn - from) * each - 1, y - 7, each + 1, h + 6);
  }
}
