// Changes of a mutable tree, step by step: its levels in rows, leaves by their side
// links, as they were after each step.

import type { Stated, TreeEvent, TreeSteps } from "./api";
import { between, box, colour, count, el, fitted, pen, title } from "./dom";
import { events, type Stage } from "./player";

const said: Record<string, string> = {
  start: "The tree before the first change.",
  search: "The search for {key} reads {at}.",
  write: "{key} is in the tree: one line of its leaf was written, or what the steps before did was enough.",
  touch: "{at} is made ready for changes: its state is kept if a snapshot needs it, and it is noted that its entries are to be counted.",
  carry: "The line of {key} in {at} was full: entries were carried to the nearest line with room.",
  pack: "The lines around {key} in {at} were full: its entries were spread evenly over all lines.",
  fill: "A new leaf, {at}, gets the upper part of the entries. Nobody can see it yet.",
  split: "{at}: the left one was cut in one commit, its side link leads to the new one. No parent knows of that yet, and every search is right already.",
  parent: "Upper nodes are replaced by copies that know the new leaves: {at}. One reference above, or the root, was exchanged.",
  seal: "{at} can be read, but not changed any more.",
  absorb: "{at}: the left one has taken over the entries of the right one in one commit.",
  dead: "{at} is no longer part of the tree. Whoever meets it begins again at the root.",
  retry: "The change of {key} begins anew: the leaf was made ready, or another was faster.",
  sort: "The batch was sorted.",
  promise: "Memory for all that the batch may need was promised: it is done whole or not at all.",
  places: "The leaves of the next operations were found by the staircase, from {key} on.",
  rewrite: "{at} was written anew with all that the batch has for it, from {key} on.",
  piece: "Operations up to {key} are done.",
  tell: "The batch tells parents of all its new leaves together, the first of which is {at}.",
  finished: "Done.",
};

const name = (id: string): string => (id[0] === "U" ? "upper node " : "leaf ") + id.slice(1);

/** sentence says what an event is. */
export function sentence(e: TreeEvent): string {
  const text = (said[e.step] ?? e.step).replace("{key}", e.key ?? "the first key").replace("{at}", e.at.map(name).join(" and ") || "a node");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export class TreeStage implements Stage {
  readonly element: HTMLElement;
  private canvas = el("canvas", { role: "img", "aria-label": "The tree after this step" });
  private says = el("p", { class: "says", "aria-live": "polite" });
  private list = el("ol", { class: "events", "aria-label": "Steps" });
  private at = 0;
  private nodes = new Map<string, Stated>();
  private built = -1; // step whose nodes are in nodes

  constructor(private rec: TreeSteps, private go: (step: number) => void) {
    const more = rec.dropped ? ` ${count(rec.dropped)} more steps were left out.` : "";
    this.element = el("section", {}, el("p", { class: "muted" }, rec.note + more), this.says, this.canvas, this.list);
  }

  get length(): number { return this.rec.events.length; }

  nextSplit(step: number): number {
    return this.rec.events.findIndex((e, i) => i > step && e.step === "split");
  }

  /** build makes the nodes those of a step: forwards from where they are, or from the beginning. */
  private build(step: number): void {
    if (step < this.built) { this.nodes.clear(); this.built = -1; }
    for (let i = this.built + 1; i <= step; i++) {
      const e = this.rec.events[i]!;
      for (const id of e.gone ?? []) this.nodes.delete(id);
      for (const n of e.nodes) this.nodes.set(n.id, n);
    }
    this.built = step;
  }

  show(step: number): void {
    this.at = step;
    const e = this.rec.events[step];
    if (!e) return;
    this.build(step);
    this.says.textContent = sentence(e);
    this.element.dataset.step = e.step;
    events(this.list, this.length, step, i => [this.rec.events[i]!.step, sentence(this.rec.events[i]!)], this.go);
    this.draw();
  }

  /** rows returns the nodes of each level in order, the root's first; and leaves that no way leads to. */
  private rows(root: string): { rows: Stated[][]; loose: Stated[] } {
    const rows: Stated[][] = [];
    let here = this.nodes.has(root) ? [this.nodes.get(root)!] : [];
    while (here.length && here[0]!.level > 0) {
      rows.push(here);
      here = here.flatMap(n => n.children ?? []).map(id => this.nodes.get(id)).filter((n): n is Stated => n !== undefined);
    }
    const leaves: Stated[] = [], seen = new Set<string>();
    for (let at = here[0]; at && !seen.has(at.id); at = at.next ? this.nodes.get(at.next) : undefined) {
      leaves.push(at);
      seen.add(at.id);
    }
    rows.push(leaves);
    const loose = [...this.nodes.values()].filter(n => n.level === 0 && n.id[0] === "L" && !seen.has(n.id));
    return { rows, loose };
  }

  private draw(): void {
    const { c, w, h } = pen(this.canvas);
    const e = this.rec.events[this.at];
    if (!e || w === 0) return;
    const { rows, loose } = this.rows(e.root);
    const top = 26, bottom = h > 300 ? 150 : 20, each = (h - top - bottom) / rows.length;
    const high = Math.min(90, each * 0.6);
    const place = new Map<string, { x: number; y: number; w: number; h: number }>();
    rows.forEach((row, level) => {
      const wide = (w - 32) / Math.max(row.length, 1), y = top + level * each;
      const last = level === rows.length - 1;
      const each1 = Math.min(wide, last ? 90 : 360), from = (w - each1 * row.length) / 2;
      row.forEach((n, i) => place.set(n.id, { x: from + i * each1 + Math.min(2, each1 * 0.1), y, w: Math.max(1.5, each1 - Math.min(4, each1 * 0.25)), h: high }));
    });
    this.edges(c, rows, place);
    rows.forEach((row, level) => {
      for (const n of row) this.node(c, n, place.get(n.id)!, e);
      title(c, level === rows.length - 1 ? `leaves · ${row.length}` : level === 0 ? "root" : `upper nodes · ${row.length}`, 16, top + level * each - 12);
    });
    if (bottom > 100) this.closeUp(c, e, loose, w, h - bottom + 34, bottom - 52);
  }

  /** closeUp draws the leaves that a step is about as large as there is room, with their lines and bounds. */
  private closeUp(c: CanvasRenderingContext2D, e: TreeEvent, loose: Stated[], w: number, y: number, h: number): void {
    const ids = [...new Set([...e.at, ...loose.map(n => n.id)])].slice(0, 4);
    const near = ids.map(id => this.nodes.get(id)).filter((n): n is Stated => n !== undefined);
    if (near.length === 0) return;
    title(c, "from near", 16, y - 12);
    const wide = Math.min(420, (w - 32) / near.length - 16), from = (w - (wide + 16) * near.length + 16) / 2;
    near.forEach((n, i) => {
      const p = { x: from + i * (wide + 16), y, w: wide, h: h - 20 };
      this.node(c, n, p, e);
      c.textAlign = "center";
      c.fillStyle = n.level === 0 && !n.told ? colour("warn") : colour("muted");
      const bounds = n.level > 0 ? `up to ${n.high}` : `keys ${n.low ? `above ${n.low} ` : ""}up to ${n.high}`;
      const seen = loose.includes(n) ? " · nobody can see it yet" : n.level === 0 && !n.told ? " · no parent knows of it" : "";
      c.fillText(fitted(c, bounds + seen, wide + 12), p.x + wide / 2, y + h - 8);
    });
  }

  /** edges draws references from parents to children, and side links. */
  private edges(c: CanvasRenderingContext2D, rows: Stated[][], place: Map<string, { x: number; y: number; w: number; h: number }>): void {
    c.lineWidth = 1;
    for (const row of rows.slice(0, -1)) for (const n of row) {
      const p = place.get(n.id)!, kids = n.children ?? [];
      kids.forEach((id, i) => {
        const q = place.get(id);
        if (!q) return;
        c.strokeStyle = colour("line");
        c.beginPath();
        c.moveTo(p.x + p.w * (i + 0.5) / kids.length, p.y + p.h);
        c.lineTo(q.x + q.w / 2, q.y);
        c.stroke();
      });
    }
    const leaves = rows[rows.length - 1]!;
    for (const n of leaves) {
      const p = place.get(n.id)!, q = n.next ? place.get(n.next) : undefined;
      if (!q) continue;
      const y = p.y + p.h + 7, a = p.x + p.w / 2, b = q.x + q.w / 2;
      c.strokeStyle = this.nodes.get(n.next!)!.told ? colour("muted") : colour("warn");
      c.lineWidth = this.nodes.get(n.next!)!.told ? 1 : 2.5;
      c.beginPath();
      c.moveTo(a, p.y + p.h);
      c.quadraticCurveTo((a + b) / 2, y + 8, b, p.y + p.h + 1);
      c.stroke();
    }
  }

  private node(c: CanvasRenderingContext2D, n: Stated, p: { x: number; y: number; w: number; h: number }, e: TreeEvent): void {
    const fill = n.room ? n.used / n.room : 0, focus = e.at.includes(n.id), fresh = e.nodes.some(x => x.id === n.id) && e.step !== "start";
    box(c, p.x, p.y, p.w, p.h);
    c.fillStyle = colour("low");
    c.fill();
    c.save();
    c.clip();
    if (n.lines && p.w > 40) { // each line by itself
      n.lines.forEach((m, j) => {
        const per = n.room / n.lines!.length, t = m / per;
        c.fillStyle = between("low", "high", 0.3 + 0.7 * t);
        c.fillRect(p.x + p.w * j / n.lines!.length, p.y + p.h * (1 - t), p.w / n.lines!.length + 0.3, p.h * t);
      });
    } else {
      c.fillStyle = between("low", "high", 0.35 + 0.65 * fill);
      c.fillRect(p.x, p.y + p.h * (1 - fill), p.w, p.h * fill);
    }
    c.restore();
    c.lineWidth = focus ? 3 : fresh ? 1.75 : 1;
    c.strokeStyle = focus ? colour("path") : fresh ? colour("select") : colour("line");
    if (n.level === 0 && !n.told) { c.setLineDash([5, 3]); if (!focus) c.strokeStyle = colour("warn"); c.lineWidth = 3; }
    box(c, p.x, p.y, p.w, p.h);
    c.stroke();
    c.setLineDash([]);
    if (p.w > 30) {
      c.textAlign = "center";
      const text = fitted(c, p.w > 90 ? `${name(n.id)} · ${n.used} of ${n.room}` : `${n.used}`, p.w - 8);
      const size = c.measureText(text).width + 8;
      c.fillStyle = colour("bg");
      c.globalAlpha = 0.82;
      box(c, p.x + (p.w - size) / 2, p.y + p.h / 2 - 9, size, 18);
      c.fill();
      c.globalAlpha = 1;
      c.fillStyle = colour("ink");
      c.fillText(text, p.x + p.w / 2, p.y + p.h / 2);
    }
  }
}
