// A search, node by node: the keys that it compares, and where that leads.

import type { Found } from "./api";
import { count, el } from "./dom";
import { bits } from "./details";
import type { Stage } from "./player";

export class SearchStage implements Stage {
  readonly element: HTMLElement;
  private way = el("div", { class: "way" });
  private says = el("p", { class: "says", "aria-live": "polite" });

  constructor(private found: Found) {
    this.element = el("section", {}, this.says, this.way);
    for (const v of found.way) {
      const cells = el("div", { class: "cells" });
      const keys = v.keys;
      const most = 64, from = Math.max(0, Math.min(v.slot - (most >> 1), keys.length - most));
      keys.slice(from, from + most).forEach((k, i) => {
        const at = from + i;
        cells.append(el("span", { class: at < v.slot ? "below" : at === v.slot ? "at" : "" }, k));
      });
      const box = el("article", {}, el("b", {}, `${v.kind} ${count(v.node)}`),
        el("span", { class: "muted" }, ` level ${v.level} · ${count(v.slot)} below the key${v.children ? `, so on to child ${count(v.child + Math.min(v.slot, v.children - 1))}` : ""}${v.note ? ` · ${v.note}` : ""}`), cells);
      if (v.bits?.length) box.append(bits(v.bits));
      this.way.append(box);
    }
  }

  get length(): number { return this.found.way.length + 1; }

  nextSplit(): number { return -1; }

  show(step: number): void {
    const f = this.found, v = f.way[step];
    this.element.dataset.step = v ? "search" : "finished";
    this.says.textContent = v
      ? `The search for ${f.key} reads node ${count(v.node)} of ${v.kind}: ${count(v.slot)} of its ${count(v.used)} keys are below.`
      : f.found ? `Found. The value is ${f.value}.` : `There is no entry with key ${f.key}.`;
    [...this.way.children].forEach((a, i) => {
      a.classList.toggle("past", i < step);
      if (i === step) { a.setAttribute("aria-current", "step"); a.scrollIntoView({ block: "nearest" }); } else a.removeAttribute("aria-current");
    });
  }
}
