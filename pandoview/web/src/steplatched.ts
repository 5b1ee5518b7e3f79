// A batch on the latched tree, on the interpreter: which node each tile is at, which it
// holds, nodes that no parent has yet, what has to be done again, and who runs.

import type { LatchedNode, LatchedSteps, LatchedStep } from "./api";
import { between, box, colour, count, el, fitted, pen, plural, title } from "./dom";
import { events, type Stage } from "./player";

interface Tile { node: number; op: number; retries: number }
interface Place { x: number; y: number; w: number; h: number }

const said: Record<string, string> = {
  start: "The tree before the first turn. Every tile has up to 16 operations, which it carries out one after the other.",
  read: "{tile} reads {node}{keys}: its word, its pairs, and then the word again. It takes no latch for that.",
  held: "{tile} has read {node}, which {other} holds: what it read may be half of a change. It reads again.",
  changed: "{tile} has read {node}, and the word was another the second time. It reads again.",
  missed: "{tile} did not get the latch of {node}: its word has changed since it was read{by}. It holds nothing and tries again.",
  latch: "{tile} has the latch of {node}, by one compare-and-swap on the word that it has read: nothing has changed there since.",
  fill: "{tile} has filled {node}, a new one. Nobody can see it yet.",
  split: "{tile} has split {node}: its side link leads to the new {new}. No parent has that yet, and whoever comes late follows the link.",
  parent: "{tile} has put {new} into its parent, {node}, and has given back the parent's latch.",
  grow: "{tile} has moved the root's halves to two new nodes. The root stays where it is, one level higher, and is free again.",
  cut: "{tile} gives back the latch of {node}, the lower half of the split.",
  undo: "{tile} gives back the latch of {node} without a change, since it did not get another one. Nobody waits with a latch in hand.",
  write: "{tile} has changed {node} and given back its latch. {op} is done.",
  answer: "{tile} has read {node} as it was at one moment. {op} is done, without a latch.",
  finished: "All tiles are done.",
};

const schedules: Record<string, string> = {
  random: "any lanes that can run",
  frozen: "whoever has won a latch is often stopped, while all others run",
};

export class LatchedStage implements Stage {
  readonly element: HTMLElement;
  private canvas = el("canvas", { role: "img", "aria-label": "The tree, its latches, and where each tile is" });
  private says = el("p", { class: "says", "aria-live": "polite" });
  private list = el("ol", { class: "events", "aria-label": "Steps" });
  private nodes = new Map<number, LatchedNode>();
  private tiles: Tile[] = [];
  private retries = 0;
  private built = -1;
  private at = 0;
  private most: number; // turns between two steps

  constructor(private rec: LatchedSteps, private go: (step: number) => void) {
    this.most = Math.max(1, ...rec.steps.map(s => s.ran.reduce((a, b) => a + b, 0)));
    const more = rec.dropped ? ` ${count(rec.dropped)} more steps were left out.` : "";
    this.element = el("section", { "data-seed": String(rec.seed) },
      el("p", {}, el("b", {}, `Seed ${rec.seed}`), el("span", { class: "muted" },
        ` · ${rec.name} · ${plural(rec.ops.length, "operation")} by ${plural(rec.tiles, "tile")} · ${count(rec.work)} instructions in ${count(rec.turns)} turns: ${schedules[rec.schedule] ?? rec.schedule} · ${rec.note}${more}`)),
      this.says, this.canvas, this.list);
  }

  get length(): number { return this.rec.steps.length; }

  nextSplit(step: number): number {
    return this.rec.steps.findIndex((s, i) => i > step && (s.step === "split" || s.step === "grow"));
  }

  private build(step: number): void {
    if (step < this.built || this.built < 0) {
      this.nodes.clear();
      this.built = -1;
      this.retries = 0;
      this.tiles = Array.from({ length: this.rec.tiles }, (_, i) => ({ node: -1, op: i * 16, retries: 0 }));
    }
    for (let i = this.built + 1; i <= step; i++) {
      const s = this.rec.steps[i]!;
      for (const n of s.nodes) this.nodes.set(n.id, n);
      const t = this.tiles[s.tile];
      if (!t) continue;
      t.op = s.op;
      if (s.step === "read") t.node = s.node;
      if (s.retry) { t.retries++; this.retries++; }
    }
    this.built = step;
  }

  private name(id: number): string {
    const n = this.nodes.get(id);
    return id === 0 ? "the root" : `${n && n.level > 0 ? "node" : "leaf"} ${id}`;
  }

  private operation(i: number): string {
    const o = this.rec.ops[i];
    if (!o) return "";
    const done = o.kind === "set" ? "is set" : o.kind === "delete" ? "is deleted" : "is looked up";
    return `${o.key} ${done}`;
  }

  private sentence(s: LatchedStep): string {
    const o = this.rec.ops[s.op], n = this.nodes.get(s.node);
    return (said[s.step] ?? s.step)
      .replace("{tile}", `Tile ${s.tile}`).replace("{node}", this.name(s.node)).replace("{new}", this.name(s.other))
      .replace("{other}", s.other === s.tile ? "it itself" : `tile ${s.other}`).replace("{by}", s.other >= 0 ? `, and tile ${s.other} holds it` : "")
      .replace("{keys}", n && n.id ? `, keys ${n.low} to ${n.high}` : "").replace("{op}", o ? `Its ${o.kind} of ${o.key}` : "");
  }

  private line(i: number): [string, string] {
    const s = this.rec.steps[i]!;
    const on = s.node < 0 ? "" : s.node === 0 ? "root" : `node ${s.node}`;
    const other = s.step === "split" || s.step === "parent" ? ` and ${s.other}` : (s.step === "held" || s.step === "missed") && s.other >= 0 ? `, held by tile ${s.other}` : "";
    return [s.step, s.tile < 0 ? "" : `tile ${s.tile} · ${on}${other} · ${this.operation(s.op)}`];
  }

  show(step: number): void {
    this.at = step;
    this.build(step);
    const s = this.rec.steps[step];
    if (!s) return;
    this.element.dataset.step = s.step;
    const held = [...this.nodes.values()].filter(n => n.holder >= 0).length, untold = [...this.nodes.values()].filter(n => !n.told).length;
    this.element.dataset.held = String(held);
    this.element.dataset.untold = String(untold);
    this.says.textContent = `${this.sentence(s)} Turn ${count(s.turn + 1)}.${this.retries ? ` ${plural(this.retries, "retry", "retries")} so far.` : ""}`;
    events(this.list, this.length, step, i => this.line(i), this.go);
    this.draw(s);
  }

  /** rows returns the nodes of each level by their side links, the root's first; and those that no link leads to. */
  private rows(): { rows: LatchedNode[][]; loose: LatchedNode[] } {
    const rows: LatchedNode[][] = [], seen = new Set<number>();
    for (let first = this.nodes.get(0); first; first = this.nodes.get(first.children?.[0] ?? -1)) {
      const row: LatchedNode[] = [];
      for (let n: LatchedNode | undefined = first; n && !seen.has(n.id); n = n.next ? this.nodes.get(n.next) : undefined) {
        row.push(n);
        seen.add(n.id);
      }
      rows.push(row);
      if (first.level === 0) break;
    }
    return { rows, loose: [...this.nodes.values()].filter(n => !seen.has(n.id)) };
  }

  private draw(s: LatchedStep): void {
    const { c, w, h } = pen(this.canvas);
    if (w === 0) return;
    const columns = this.rec.tiles > 8 ? 2 : 1, lines = Math.ceil(this.rec.tiles / columns);
    const strip = 40, line = Math.max(16, Math.min(20, h * 0.3 / lines));
    this.tiles.forEach((_, i) => this.entry(c, s, i, { x: Math.floor(i / lines) * w / columns, y: 15 + i % lines * line, w: w / columns, h: line }));
    const top = 15 + lines * line + 30, bottom = h - strip - 12;
    const { rows, loose } = this.rows();
    const each = (bottom - top + 22) / rows.length, high = Math.max(16, Math.min(60, each - 44));
    const place = new Map<number, Place>();
    rows.forEach((row, r) => {
      const all = [...row, ...loose.filter(n => n.level === row[0]!.level)];
      const wide = Math.min(110, (w - 24) / all.length), from = (w - wide * all.length) / 2;
      all.forEach((n, i) => place.set(n.id, { x: from + i * wide + 1, y: top + r * each, w: Math.max(3, wide - Math.min(5, wide * 0.25)), h: high }));
    });
    this.edges(c, place);
    rows.forEach((row, r) => title(c, row[0]!.level === 0 ? `leaves · ${row.length}` : r === 0 ? "root" : `inner nodes · ${row.length}`, 10, top + r * each - 11));
    for (const [id, p] of place) this.node(c, this.nodes.get(id)!, p, s);
    this.marks(c, place, s);
    this.schedule(c, 62, h - strip, w - 74, strip - 8);
  }

  /** entry writes what a tile does. */
  private entry(c: CanvasRenderingContext2D, s: LatchedStep, i: number, p: Place): void {
    const t = this.tiles[i]!, now = s.tile === i;
    this.dot(c, i, p.x + 16, p.y, now ? colour("path") : undefined);
    const held = [...this.nodes.values()].filter(n => n.holder === i).map(n => n.id === 0 ? "the root" : String(n.id));
    const at = t.node < 0 ? "" : ` · at ${this.name(t.node)}`;
    c.textAlign = "right";
    c.fillStyle = colour("muted");
    const again = t.retries ? plural(t.retries, "retry", "retries") : "", right = p.x + p.w - 12;
    c.fillText(again, right, p.y);
    const holds = held.length ? `holds ${held.join(" and ")}` : "";
    c.fillStyle = this.hue(i);
    c.fillText(holds, right - 76, p.y);
    c.textAlign = "left";
    c.fillStyle = now ? colour("ink") : colour("muted");
    const room = p.w - 54 - 76 - (holds ? c.measureText(holds).width + 8 : 0);
    c.fillText(fitted(c, `tile ${i} · ${this.operation(t.op)} (${t.op % 16 + 1} of ${Math.min(16, this.rec.ops.length - i * 16)})${at}`, room), p.x + 30, p.y);
  }

  /** dot draws a tile, in a ring where it is its turn. */
  private dot(c: CanvasRenderingContext2D, tile: number, x: number, y: number, ring?: string): void {
    c.beginPath();
    c.arc(x, y, 7, 0, 7);
    c.fillStyle = this.hue(tile);
    c.fill();
    c.lineWidth = ring ? 2.5 : 1;
    c.strokeStyle = ring ?? colour("bg");
    c.stroke();
    const font = c.font;
    c.font = "bold 9px system-ui, sans-serif";
    c.textAlign = "center";
    c.fillStyle = colour("bg");
    c.fillText(String(tile), x, y + 0.5);
    c.font = font;
  }

  private hue(tile: number): string { return colour(`w${tile % 8}`); }

  /** edges draws children and side links. */
  private edges(c: CanvasRenderingContext2D, place: Map<number, Place>): void {
    for (const [id, p] of place) {
      const n = this.nodes.get(id)!, kids = n.children ?? [];
      kids.forEach((k, i) => {
        const q = place.get(k);
        if (!q) return;
        c.strokeStyle = colour("line");
        c.lineWidth = 1;
        c.beginPath();
        c.moveTo(p.x + p.w * (i + 0.5) / kids.length, p.y + p.h);
        c.lineTo(q.x + q.w / 2, q.y);
        c.stroke();
      });
      const q = n.next ? place.get(n.next) : undefined, to = this.nodes.get(n.next);
      if (!q || !to || q.y !== p.y) continue;
      c.strokeStyle = to.told ? colour("muted") : colour("warn");
      c.lineWidth = to.told ? 1 : 2.5;
      c.beginPath();
      c.moveTo(p.x + p.w * 0.7, p.y + p.h);
      c.quadraticCurveTo((p.x + p.w + q.x) / 2, p.y + p.h + 9, q.x + q.w * 0.3, p.y + p.h + 1);
      c.stroke();
    }
  }

  private node(c: CanvasRenderingContext2D, n: LatchedNode, p: Place, s: LatchedStep): void {
    const fill = n.used / this.rec.room, focus = s.node === n.id || (s.step === "split" || s.step === "parent") && s.other === n.id;
    box(c, p.x, p.y, p.w, p.h);
    c.fillStyle = colour("low");
    c.fill();
    c.save();
    c.clip();
    c.fillStyle = between("low", "high", 0.35 + 0.65 * fill);
    c.fillRect(p.x, p.y + p.h * (1 - fill), p.w, p.h * fill);
    if (n.holder >= 0) { // stripes of whoever holds it
      c.strokeStyle = this.hue(n.holder);
      c.lineWidth = 3;
      for (let x = p.x - p.h; x < p.x + p.w; x += 9) {
        c.beginPath();
        c.moveTo(x, p.y + p.h);
        c.lineTo(x + p.h, p.y);
        c.stroke();
      }
    }
    c.restore();
    box(c, p.x, p.y, p.w, p.h);
    c.lineWidth = n.holder >= 0 ? 3.5 : focus ? 2.5 : 1;
    c.strokeStyle = n.holder >= 0 ? this.hue(n.holder) : focus ? colour("path") : colour("line");
    if (!n.told) { c.setLineDash([5, 3]); c.strokeStyle = colour("warn"); c.lineWidth = 3; }
    c.stroke();
    c.setLineDash([]);
    if (p.w < 24) return;
    const text = fitted(c, p.w > 66 ? `${n.id === 0 ? "root" : n.id} · ${n.used}` : String(n.id), p.w - 4), wide = c.measureText(text).width + 6;
    c.textAlign = "center";
    c.fillStyle = colour("bg");
    c.globalAlpha = 0.85;
    box(c, p.x + (p.w - wide) / 2, p.y + p.h / 2 - 8, wide, 16);
    c.fill();
    c.globalAlpha = 1;
    c.fillStyle = colour("ink");
    c.fillText(text, p.x + p.w / 2, p.y + p.h / 2);
  }

  /** marks draws a dot for each tile above the node that it is at. */
  private marks(c: CanvasRenderingContext2D, place: Map<number, Place>, s: LatchedStep): void {
    const there = new Map<number, number>();
    this.tiles.forEach((t, i) => {
      const p = place.get(t.node);
      if (!p) return;
      const nth = there.get(t.node) ?? 0;
      there.set(t.node, nth + 1);
      const of = this.tiles.filter(x => x.node === t.node).length, gap = Math.min(16, Math.max(p.w, 24) / of);
      this.dot(c, i, p.x + p.w / 2 + (nth - (of - 1) / 2) * gap, p.y - 10, s.tile === i ? colour(s.retry ? "bad" : "path") : undefined);
    });
  }

  /** schedule draws how many turns each tile had before each step, around the present. */
  private schedule(c: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
    c.textAlign = "left";
    c.fillStyle = colour("muted");
    c.fillText("turns", 10, y + h / 2);
    const each = Math.max(3, Math.min(12, w / this.length)), room = Math.floor(w / each);
    const from = Math.max(0, Math.min(this.at - (room >> 1), this.length - room));
    for (let i = from; i < Math.min(this.length, from + room); i++) {
      const s = this.rec.steps[i]!, all = s.ran.reduce((a, b) => a + b, 0);
      if (all === 0) continue;
      const high = Math.max(2, h * Math.log2(1 + all) / Math.log2(1 + this.most));
      let bottom = y + h;
      s.ran.forEach((n, tile) => {
        if (!n) return;
        c.fillStyle = this.hue(tile);
        const part = high * n / all;
        c.fillRect(x + (i - from) * each, bottom - part, Math.max(1, each - 1), part);
        bottom -= part;
      });
    }
    c.strokeStyle = colour("path");
    c.lineWidth = 2;
    c.strokeRect(x + (this.at - from) * each - 1.5, y - 3, each + 2, h + 5);
  }
}
