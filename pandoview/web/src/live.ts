// A tree that others change: counts and rates, leaves that change and those that
// are held. Rates come from the versions that leaves have anyway.

import { ask, type Pulse, type TreeSteps } from "./api";
import { between, byID, bytes, colour, count, el, onScheme, pen, plural, short, trouble } from "./dom";
import { sentence } from "./steptree";

const kept = 120; // pulses that are remembered

interface Rates { changes: number; entries: number; bytes: number }

export class Live {
  private timer = 0;
  private pulses: Pulse[] = [];
  private rates: Rates[] = [];
  private heat: number[] = [];

  /** typed: a radix tree, of which inner nodes are sampled, not leaves */
  constructor(private room: number, private typed: boolean, private changed: () => void) {
    byID("watch").onclick = () => void this.watch();
    onScheme(() => this.draw());
  }

  private get nodes(): string { return this.typed ? "inner nodes" : "leaves"; }

  start(): void {
    if (!this.timer) {
      void this.look();
      this.timer = window.setInterval(() => void this.look(), 1000);
    }
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = 0;
  }

  private async look(): Promise<void> {
    try {
      const now = await ask<Pulse>("live");
      const before = this.pulses[this.pulses.length - 1];
      this.pulses = [...this.pulses.slice(-kept), now];
      if (before) this.compare(before, now);
      trouble(null);
      this.draw();
      this.changed();
    } catch (e) {
      this.stop();
      trouble(e);
    }
  }

  /** compare tells rates from two looks: versions of leaves that are in both. */
  private compare(a: Pulse, b: Pulse): void {
    const seconds = Math.max(0.001, (b.at - a.at) / 1000);
    const was = new Map(a.sample.map(s => [s[0], s[1]]));
    let sum = 0, both = 0;
    this.heat = b.sample.map(s => {
      const v = was.get(s[0]);
      if (v === undefined || s[1] < v) return -1;
      sum += s[1] - v;
      both++;
      return s[1] - v;
    });
    const changes = both ? sum * (this.typed ? b.uppers : b.leaves) / both / seconds : 0;
    this.rates = [...this.rates.slice(-kept), { changes, entries: (b.entries - a.entries) / seconds, bytes: (b.bytes - a.bytes) / seconds }];
  }

  private draw(): void {
    const p = this.pulses[this.pulses.length - 1];
    if (!p) return;
    const r = this.rates[this.rates.length - 1];
    const locked = p.sample.filter(s => s[3] === 1).length, sealed = p.sample.filter(s => s[3] === 2).length;
    const cards: [string, string, string, number[]?][] = [
      [this.typed ? "changes of links a second" : "changes a second", r ? short(r.changes) : "…", `by versions of sampled ${this.nodes}`, this.rates.map(x => x.changes)],
      ["entries", count(p.entries), r ? `${r.entries >= 0 ? "+" : "−"}${short(Math.abs(r.entries))} a second` : "", this.pulses.map(x => x.entries)],
      ["memory", bytes(p.bytes), p.kept ? `${bytes(p.kept)} of it for snapshots` : "", this.pulses.map(x => x.bytes)],
      ["leaves", count(p.leaves), `${plural(p.uppers, this.typed ? "inner node" : "upper node")}, height ${p.height}`, this.pulses.map(x => x.leaves)],
      ["held at this moment", this.typed ? String(locked) : `${locked} + ${sealed}`, `${this.typed ? "locked" : "locked and sealed"}, of ${count(p.sample.length)} ${this.nodes}`],
    ];
    if (!this.typed) cards.push(
      ["not in their parent yet", count(p.pending), "leaves that wait for memory above"],
      ["waiting to be reused", count(p.retired), `nodes; generation ${count(p.generation)}`],
      ["to be counted", count(p.dirty), `leaves; epoch ${count(p.epoch)}`],
    );
    byID("cards").replaceChildren(...cards.map(([name, value, more, line]) => {
      const card = el("div", { class: "card" }, el("span", { class: "muted" }, name), el("strong", {}, value), el("span", { class: "muted" }, more || "\u00a0"));
      if (line) card.append(el("canvas", { role: "img", "aria-label": `${name}, over time` }));
      return card;
    }));
    document.querySelectorAll<HTMLCanvasElement>("#cards canvas").forEach((c, i) => sparkline(c, cards.filter(x => x[3])[i]![3]!));
    this.drawHeat(p);
  }

  private drawHeat(p: Pulse): void {
    const { c, w, h } = pen(byID<HTMLCanvasElement>("heat"));
    byID("sampled-of").textContent = this.typed ? "Inner nodes" : "Leaves";
    const room = this.typed ? Math.max(1, ...p.sample.map(s => s[2])) : this.room;
    const n = p.sample.length, most = Math.max(1, ...this.heat), each = (w - 16) / Math.max(1, n);
    byID("sampled").textContent = `${count(n)} of ${count(this.typed ? p.uppers : p.leaves)}, in key order: height is ${this.typed ? "links" : "fill"}, colour is changes since the last look`;
    p.sample.forEach((s, i) => {
      const fill = Math.min(1, s[2] / room);
      const hot = this.heat[i] ?? 0;
      c.fillStyle = s[3] ? colour("bad") : between("low", "w1", hot <= 0 ? 0.08 : 0.25 + 0.75 * hot / most);
      c.fillRect(8 + i * each, 8 + (h - 16) * (1 - fill), Math.max(0.8, each - (each > 4 ? 1 : 0)), (h - 16) * fill);
    });
    const changed = this.heat.filter(x => x > 0).length;
    byID("heat-text").textContent = this.heat.length ? `${this.typed ? plural(changed, "sampled node has", "sampled nodes have") : plural(changed, "sampled leaf has", "sampled leaves have")} changed since the last look; the busiest ${plural(most, "time")}. Readers leave no trace.` : "";
  }

  private async watch(): Promise<void> {
    const button = byID<HTMLButtonElement>("watch");
    button.disabled = true;
    try {
      const rec = await ask<TreeSteps>("steps", { op: "watch", ms: 500 });
      const counts = new Map<string, number>();
      for (const e of rec.events) counts.set(e.step, (counts.get(e.step) ?? 0) + 1);
      const head = el("li", {}, el("span"), el("span", {}, "in all"), el("span", {}, [...counts].map(([k, n]) => `${k} ${count(n)}`).join(", ") || "nothing but lines written"));
      const rare = rec.events.filter(e => e.step !== "carry" && e.step !== "touch" && e.step !== "retry");
      byID("watched").replaceChildren(head, ...(rare.length ? rare : rec.events).slice(0, 200).map((e, i) =>
        el("li", {}, el("span", { class: "muted" }, String(i + 1)), el("span", {}, e.step), el("span", { title: sentence(e) }, sentence(e)))));
      trouble(null);
    } catch (e) {
      trouble(e);
    } finally {
      button.disabled = false;
    }
  }
}

function sparkline(canvas: HTMLCanvasElement, values: number[]): void {
  const { c, w, h } = pen(canvas);
  if (values.length < 2) return;
  const lo = Math.min(...values), hi = Math.max(...values), span = hi - lo || 1;
  c.strokeStyle = colour("accent");
  c.lineWidth = 1.5;
  c.beginPath();
  values.forEach((v, i) => c.lineTo(i / (values.length - 1) * w, h - 3 - (v - lo) / span * (h - 6)));
  c.stroke();
}
