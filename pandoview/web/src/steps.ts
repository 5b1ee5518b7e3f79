// Steps: what to record, and the recordings on the screen.

import { ask, type Description, type Found, type KernelSteps, type LatchedSteps, type RadixSteps, type TreeSteps } from "./api";
import { byID, el, onScheme, trouble } from "./dom";
import { Player, type Stage } from "./player";
import { KernelStage } from "./stepkernel";
import { LatchedStage } from "./steplatched";
import { RadixStage } from "./stepradix";
import { SearchStage } from "./stepsearch";
import { TreeStage } from "./steptree";

/** Op is what can be recorded. next is what the button says that goes to the next split. */
interface Op { id: string; text: string; count?: number; seed?: boolean; seeds?: boolean; schedule?: boolean; next?: string }

export class Steps {
  private player = new Player();
  private op = byID<HTMLSelectElement>("op");
  private ops: Op[] = [];

  constructor(private ix: Description) {
    const next = ix.radix ? "Next new node" : "Next split";
    this.ops.push({ id: "search", text: "a search" });
    if (ix.changes) {
      this.ops.push({ id: "insert", text: "inserts and their splits", count: 40, next });
      this.ops.push({ id: "batch", text: "a batch update and its phases", count: 2000, seed: true, next });
    }
    if (ix.radix) {
      this.ops.push({ id: "insert", text: "inserts into a radix tree", count: 40, next });
      this.ops.push({ id: "delete", text: "deletes from a radix tree", count: 40, next });
      this.ops.push({ id: "beside", text: "values set beside a snapshot", count: 20, next });
      this.ops.push({ id: "batch", text: "a batch update of a radix tree", count: 100, seed: true, next });
    }
    if (ix.kernel) this.ops.push({ id: "kernel", text: "a kernel under two seeds", count: 32, seed: true, seeds: true });
    if (ix.latched) this.ops.push({ id: "latched", text: "latches under two seeds", count: 64, seed: true, seeds: true, schedule: true, next: "Next split" });
    for (const o of this.ops) this.op.append(el("option", { value: o.id }, o.text));
    this.op.onchange = () => this.choose();
    this.op.value = ix.changes || ix.radix ? "insert" : "search";
    this.choose();
    byID<HTMLFormElement>("record").onsubmit = e => { e.preventDefault(); void this.record(); };
    onScheme(() => this.player.again());
    new ResizeObserver(() => this.player.again()).observe(byID("stages"));
  }

  private get now(): Op { return this.ops.find(o => o.id === this.op.value)!; }

  private choose(): void {
    const o = this.now;
    for (const e of document.querySelectorAll<HTMLElement>("[data-for]")) {
      const what = e.dataset.for;
      e.hidden = what === "count" ? o.count === undefined : !o[what as "seed" | "seeds" | "schedule"];
    }
    if (o.count) byID<HTMLInputElement>("count").value = String(o.count);
  }

  private async record(): Promise<void> {
    const o = this.now, go = (step: number): void => { this.player.pause(); this.player.go(step); };
    const button = byID<HTMLButtonElement>("record-go");
    const ps: Record<string, string | number> = { op: o.id };
    const key = byID<HTMLInputElement>("step-key").value.trim();
    if (key) ps.key = key;
    if (o.count) ps.n = byID<HTMLInputElement>("count").value;
    button.disabled = true;
    button.textContent = "Recording …";
    try {
      let stages: (Stage & { element: HTMLElement })[];
      if (o.id === "search") {
        stages = [new SearchStage(await ask<Found>("search", key ? { key } : { middle: 1 }))];
      } else if (o.seeds) {
        if (o.schedule) ps.schedule = byID<HTMLSelectElement>("schedule").value;
        const seeds = ["seed-a", "seed-b"].map(id => byID<HTMLInputElement>(id).value).filter(s => s !== "");
        const each = <T>(): Promise<T[]> => Promise.all(seeds.map(seed => ask<T>("steps", { ...ps, seed })));
        stages = o.id === "kernel" ? (await each<KernelSteps>()).map(r => new KernelStage(r, go)) : (await each<LatchedSteps>()).map(r => new LatchedStage(r, go));
      } else {
        if (o.seed) ps.seed = byID<HTMLInputElement>("seed-a").value;
        stages = [this.ix.radix ? new RadixStage(await ask<RadixSteps>("steps", ps), go) : new TreeStage(await ask<TreeSteps>("steps", ps), go)];
      }
      byID("stages").replaceChildren(...stages.map(s => s.element));
      this.player.load(stages, o.next);
      byID("steps-panel").dataset.recorded = o.id;
      trouble(null);
    } catch (e) {
      trouble(e);
    } finally {
      button.disabled = false;
      button.textContent = "Record";
    }
  }

  key(e: KeyboardEvent): boolean { return !byID("player").hidden && this.player.key(e); }

  pause(): void { this.player.pause(); }
}
