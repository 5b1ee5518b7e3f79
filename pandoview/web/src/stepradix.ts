// Changes of a radix tree, step by step: all of it from far, as wide as the keys below
// each node are many, and the nodes that a step is about from near, with their links.

import type { RadixEvent, RadixNode, RadixSteps } from "./api";
import { between, box, colour, count, el, fitted, pen, title } from "./dom";
import { events, type Stage } from "./player";

const said: Record<string, string> = {
  start: "The tree before the first change.",
  way: "The way of {key}: each node says which byte tells its keys apart, and the link of that byte leads on.",
  link: "A link to the leaf of {key} was added to {at}, which had room.",
  grow: "A {was} was full: {at} has all its links, that of {key} too, and took its place by one link above.",
  branch: "A path was split: {key} leaves it before the next node. So there is {at}, a new one, that leads to what was there and to the leaf of {key}.",
  value: "The value of {key} was set in its leaf.",
  leaf: "The snapshot has the leaf of {key}, so that a new leaf was linked in its place.",
  copy: "The snapshot has the nodes on the way of {key}: {copies} took their place, and what is changed from now on is no longer the snapshot's.",
  unlink: "The link to the leaf of {key} was taken out of {at}.",
  shrink: "A {was} had few links left without {key}: {at}, which is smaller, took its place.",
  collapse: "Without {key} a {was} had one link left: what that led to is in its place, and the path is longer.",
  snapshot: "A snapshot was taken. It shares all nodes; none that it has is changed any more.",
  promise: "Memory for all that the batch may need was promised: it is done whole or not at all.",
  together: "The ways of the next 64 operations, from {key} on, were walked at once, so that their nodes come from memory together. They are done one after the other.",
  finished: "Done.",
};

interface Place { x: number; y: number; w: number; h: number }

export class RadixStage implements Stage {
  readonly element: HTMLElement;
  private canvas = el("canvas", { role: "img", "aria-label": "The radix tree after this step" });
  private says = el("p", { class: "says", "aria-live": "polite" });
  private list = el("ol", { class: "events", "aria-label": "Steps" });
  private nodes = new Map<number, RadixNode>();
  private built = -1;

  constructor(private rec: RadixSteps, private go: (step: number) => void) {
    const more = rec.dropped ? ` ${count(rec.dropped)} more steps were left out.` : "";
    this.element = el("section", {}, el("p", { class: "muted" }, rec.note + more), this.says, this.canvas, this.list);
  }

  get length(): number { return this.rec.events.length; }

  nextSplit(step: number): number {
    return this.rec.events.findIndex((e, i) => i > step && ["grow", "branch", "shrink", "collapse", "copy"].includes(e.step));
  }

  private build(step: number): void {
    if (step < this.built) { this.nodes.clear(); this.built = -1; }
    for (let i = this.built + 1; i <= step; i++) {
      const e = this.rec.events[i]!;
      for (const id of e.gone ?? []) this.nodes.delete(id);
      for (const n of e.nodes) this.nodes.set(n.id, n);
    }
    this.built = step;
  }

  private sentence(e: RadixEvent): string {
    const at = this.nodes.get(e.at[0] ?? -1);
    const text = (said[e.step] ?? e.step).replaceAll("{key}", e.key ?? "the first key").replace("{was}", e.was ?? "node")
      .replace("{at}", at ? `a ${at.type}` : "the root").replace("{copies}", e.at.length === 1 ? "a copy" : `${e.at.length} copies`);
    return text.charAt(0).toUpperCase() + text.slice(1);
  }

  show(step: number): void {
    const e = this.rec.events[step];
    if (!e) return;
    this.build(step);
    this.says.textContent = this.sentence(e);
    this.element.dataset.step = e.step;
    events(this.list, this.length, step, i => {
      const x = this.rec.events[i]!;
      return [x.step, [x.key, x.was && `was ${x.was}`, x.at.length > 1 ? `${x.at.length} nodes` : ""].filter(t => t).join(" · ")];
    }, this.go);
    this.draw(e);
  }

  private draw(e: RadixEvent): void {
    const { c, w, h } = pen(this.canvas);
    if (w === 0) return;
    const root = this.nodes.get(e.root);
    if (!root) {
      c.textAlign = "center";
      c.fillStyle = colour("muted");
      c.fillText(e.root ? "A tree of one key has no node: its root is the leaf." : "The tree is empty.", w / 2, h / 2);
      return;
    }
    const leaves = new Map<number, number>(), levels = this.measure(root, leaves);
    const near = h > 260 ? this.near(c, e, w, h, h * 0.5) : 0;
    const top = 30, each = Math.min(64, (h - near - top - 12) / (levels + 1));
    title(c, `all nodes, from the root down, as wide as the keys below are many · ${count(this.nodes.size)} nodes, ${count(leaves.get(root.id)!)} keys`, 10, 14);
    this.far(c, root, { x: 10, y: top, w: w - 20, h: each }, leaves, e);
  }

  /** measure counts the keys below each node, and returns how many levels there are. */
  private measure(n: RadixNode, leaves: Map<number, number>): number {
    let sum = 0, deepest = 0;
    for (const l of n.links) {
      const child = l.leaf ? undefined : this.nodes.get(l.to);
      if (child) deepest = Math.max(deepest, this.measure(child, leaves));
      sum += child ? leaves.get(child.id)! : 1;
    }
    leaves.set(n.id, sum);
    return deepest + 1;
  }

  /** far draws a node over what is below it. */
  private far(c: CanvasRenderingContext2D, n: RadixNode, p: Place, leaves: Map<number, number>, e: RadixEvent): void {
    const wide = Math.max(1, p.w - Math.min(2, p.w * 0.2)), high = p.h - 4;
    const used = n.links.length / n.room, focus = e.at.includes(n.id), fresh = e.step !== "start" && e.nodes.some(x => x.id === n.id);
    box(c, p.x, p.y, wide, high);
    c.fillStyle = between("low", "high", 0.15 + 0.7 * Math.min(1, used));
    c.fill();
    c.lineWidth = focus ? 3 : fresh ? 2 : 0.75;
    c.strokeStyle = focus ? colour("path") : fresh ? colour("select") : colour("line");
    c.stroke();
    if (wide > 26 && high > 12) {
      c.textAlign = "center";
      c.fillStyle = used > 0.6 ? colour("node-ink-full") : colour("node-ink");
      c.fillText(fitted(c, wide > 110 ? `${n.type} · ${n.links.length} links` : wide > 50 ? n.type : n.type.slice(5), wide - 6), p.x + wide / 2, p.y + high / 2);
    }
    let x = p.x;
    const unit = p.w / leaves.get(n.id)!;
    for (const l of n.links) {
      const child = l.leaf ? undefined : this.nodes.get(l.to);
      const part = unit * (child ? leaves.get(child.id)! : 1);
      if (child) this.far(c, child, { x, y: p.y + p.h, w: part, h: p.h }, leaves, e);
      else {
        const at = focus && e.byte === l.byte;
        c.fillStyle = at ? colour("path") : colour("muted");
        c.fillRect(x + part * 0.2, p.y + p.h, Math.max(0.75, part * 0.6), at ? 8 : 4);
      }
      x += part;
    }
  }

  /** near draws the nodes that a step is about with a cell for each link, from the bottom up, and returns how high that is. */
  private near(c: CanvasRenderingContext2D, e: RadixEvent, w: number, bottom: number, most: number): number {
    const ids = e.at.length ? e.at : [e.root], fit = Math.max(1, Math.floor(w / 190));
    const shown = ids.slice(Math.max(0, ids.length - fit)).map(id => this.nodes.get(id)).filter((n): n is RadixNode => n !== undefined);
    if (shown.length === 0) return 0;
    const wide = Math.min(shown.length > 1 ? 460 : 760, (w - 20) / shown.length - 14), from = (w - (wide + 14) * shown.length + 14) / 2;
    const grids = shown.map(n => grid(Math.max(n.room, n.links.length), wide - 16, most - 82));
    const high = 52 + Math.max(...grids.map(g => g.h * g.rows)), y = bottom - high - 10;
    title(c, `from near${ids.length > shown.length ? ` · the last ${shown.length} of ${ids.length} nodes` : ""} · a cell is a link: green to a node, plain to a leaf, dotted where there is room`, 10, y - 14);
    shown.forEach((n, i) => {
      const next = shown[i + 1], on = e.step === "way" && next ? n.links.find(l => l.to === next.id)?.byte : e.byte;
      this.card(c, n, { x: from + i * (wide + 14), y, w: wide, h: high }, grids[i]!, e.at.includes(n.id), on);
    });
    return high + 30;
  }

  private card(c: CanvasRenderingContext2D, n: RadixNode, p: Place, g: Grid, focus: boolean, hit: string | undefined): void {
    box(c, p.x, p.y, p.w, p.h);
    c.fillStyle = colour("panel");
    c.fill();
    c.lineWidth = focus ? 2 : 1;
    c.strokeStyle = focus ? colour("path") : colour("line");
    c.stroke();
    c.textAlign = "left";
    c.fillStyle = colour("ink");
    c.fillText(fitted(c, `${n.type} · ${n.links.length} links · byte ${n.depth + 1} decides`, p.w - 16), p.x + 8, p.y + 13);
    c.fillStyle = colour("muted");
    c.fillText(fitted(c, n.depth ? `below: ${n.prefix}` : "below: all keys", p.w - 16, true), p.x + 8, p.y + 30);
    for (let i = 0; i < Math.max(n.room, n.links.length); i++) {
      const l = n.links[i], x = p.x + 8 + (i % g.columns) * g.w, y = p.y + 43 + Math.floor(i / g.columns) * g.h;
      const at = l !== undefined && l.byte === hit;
      box(c, x, y, g.w - 2, g.h - 2);
      c.fillStyle = at ? colour("path") : l && !l.leaf ? colour("high") : colour("bg");
      c.fill();
      c.lineWidth = 1;
      c.strokeStyle = colour(l ? "muted" : "line");
      if (!l) c.setLineDash([2, 2]);
      c.stroke();
      c.setLineDash([]);
      if (!l || g.w < 15 || g.h < 12) continue;
      c.textAlign = "center";
      c.fillStyle = at ? colour("bg") : l.leaf ? colour("ink") : colour("node-ink-full");
      c.fillText(fitted(c, l.byte, g.w - 3), x + g.w / 2 - 1, y + g.h / 2 - 1);
    }
  }
}

interface Grid { columns: number; rows: number; w: number; h: number }

/** grid returns how cells are laid out in a width, as large as a height allows. */
function grid(cells: number, wide: number, most: number): Grid {
  for (let w = 40; ; w--) {
    const columns = Math.max(1, Math.floor(wide / w)), rows = Math.ceil(cells / columns), h = Math.min(28, w * 0.8);
    if (rows * h <= most || w <= 6) return { columns, rows, w, h: Math.min(h, most / rows) };
  }
}
