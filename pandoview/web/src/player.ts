// Play, pause, forth and back over recordings that run side by side.

import { byID, count } from "./dom";

/** Stage is a recording on the screen. */
export interface Stage {
  readonly length: number;
  show(step: number): void;
  /** next returns the next step behind one at which something splits, or -1. */
  nextSplit(step: number): number;
}

export class Player {
  private stages: Stage[] = [];
  private at = 0;
  private timer = 0;
  private play = byID<HTMLButtonElement>("play");
  private slider = byID<HTMLInputElement>("position");

  constructor() {
    byID("first").onclick = () => this.go(0);
    byID("back").onclick = () => this.go(this.at - 1);
    byID("forth").onclick = () => this.go(this.at + 1);
    byID("last").onclick = () => this.go(this.length - 1);
    byID("next-split").onclick = () => this.split();
    this.play.onclick = () => this.toggle();
    this.slider.oninput = () => this.go(Number(this.slider.value));
    byID("speed").onchange = () => { if (this.timer) { this.toggle(); this.toggle(); } };
  }

  private get length(): number { return Math.max(1, ...this.stages.map(s => s.length)); }

  /** load shows recordings; next is what the button says that goes to the next split, none if there is none. */
  load(stages: Stage[], next?: string): void {
    this.pause();
    this.stages = stages;
    byID("player").hidden = stages.length === 0;
    byID("next-split").hidden = next === undefined;
    byID("next-split").textContent = next ?? "";
    this.slider.max = String(this.length - 1);
    this.go(0);
  }

  /** go shows a step of all recordings; one that is shorter stays at its end. */
  go(step: number): void {
    this.at = Math.max(0, Math.min(step, this.length - 1));
    for (const s of this.stages) s.show(Math.min(this.at, s.length - 1));
    this.slider.value = String(this.at);
    byID("step-number").textContent = `${count(this.at + 1)} of ${count(this.length)}`;
    byID("steps-panel").dataset.step = String(this.at);
    if (this.at === this.length - 1) this.pause();
  }

  again(): void { if (this.stages.length) this.go(this.at); }

  pause(): void {
    clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = "▶";
    this.play.setAttribute("aria-label", "Play");
  }

  toggle(): void {
    if (this.timer) { this.pause(); return; }
    if (this.at >= this.length - 1) this.go(0);
    this.timer = window.setInterval(() => this.go(this.at + 1), Number(byID<HTMLSelectElement>("speed").value));
    this.play.textContent = "▮▮";
    this.play.setAttribute("aria-label", "Pause");
  }

  split(): void {
    const next = this.stages.map(s => s.nextSplit(this.at)).filter(n => n >= 0);
    if (next.length) { this.pause(); this.go(Math.min(...next)); }
  }

  key(e: KeyboardEvent): boolean {
    switch (e.key) {
      case " ": this.toggle(); return true;
      case "ArrowLeft": this.pause(); this.go(this.at - 1); return true;
      case "ArrowRight": this.pause(); this.go(this.at + 1); return true;
      case "Home": this.go(0); return true;
      case "End": this.go(this.length - 1); return true;
      case "n": this.split(); return true;
    }
    return false;
  }
}

/** events shows the lines around the present one of a long list. */
export function events(list: HTMLElement, length: number, at: number, line: (i: number) => [string, string], go: (i: number) => void): void {
  const rows = 7;
  const from = Math.max(0, Math.min(at - 3, length - rows));
  const items: HTMLElement[] = [];
  for (let i = from; i < Math.min(length, from + rows); i++) {
    const [kind, text] = line(i);
    const li = document.createElement("li");
    const number = document.createElement("span"), what = document.createElement("span"), says = document.createElement("span");
    number.className = "muted";
    number.textContent = count(i + 1);
    what.textContent = kind;
    says.textContent = text;
    says.title = text;
    li.append(number, what, says);
    if (i === at) li.setAttribute("aria-current", "step");
    li.onclick = () => go(i);
    items.push(li);
  }
  list.replaceChildren(...items);
}
