// Small helpers: elements, numbers as people read them, colours of the page.

export function byID<T extends HTMLElement>(id: string): T {
  const e = document.getElementById(id);
  if (!e) throw new Error(`no element ${id}`);
  return e as T;
}

type Child = Element | Text | string;

/** el makes an element. Text is always text, never markup: keys may hold anything. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

const numbers = new Intl.NumberFormat("en-US");
export const count = (n: number): string => numbers.format(n);

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  let u = -1;
  do { n /= 1024; u++; } while (n >= 1000 && u < 4);
  return `${n.toFixed(n < 10 ? 2 : 1)} ${"KMGTP"[u]}iB`;
}

/** short shortens a number to few digits: 12.3k. */
export function short(n: number): string {
  const abs = Math.abs(n);
  if (abs >= 1e9) return `${(n / 1e9).toFixed(1)}G`;
  if (abs >= 1e6) return `${(n / 1e6).toFixed(1)}M`;
  if (abs >= 1e4) return `${(n / 1e3).toFixed(1)}k`;
  return count(Math.round(n));
}

export const plural = (n: number, one: string, many = one + "s"): string => `${count(n)} ${n === 1 ? one : many}`;

/** trouble shows what went wrong, or that nothing does any more. */
export function trouble(e: unknown): void {
  const p = byID("trouble");
  p.hidden = !e;
  p.textContent = e instanceof Error ? e.message : String(e ?? "");
}

/** list makes a list of names and values. */
export function list(rows: [string, string][]): HTMLElement {
  const dl = el("dl");
  for (const [name, value] of rows) dl.append(el("dt", {}, name), el("dd", {}, value));
  return dl;
}

const schemes = window.matchMedia("(prefers-color-scheme: dark)");
let colours = new Map<string, string>();

/** colour returns a colour of the page's scheme by its name in the style sheet. */
export function colour(name: string): string {
  let c = colours.get(name);
  if (c === undefined) {
    c = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, c);
  }
  return c;
}

/** onScheme calls f whenever the scheme changes. */
export function onScheme(f: () => void): void {
  schemes.addEventListener("change", () => { colours = new Map(); f(); });
}

function rgb(hex: string): [number, number, number] {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, n >> 8 & 255, n & 255];
}

/** between mixes two colours of the scheme. */
export function between(a: string, b: string, part: number): string {
  const [x, y] = [rgb(colour(a)), rgb(colour(b))];
  const t = Math.max(0, Math.min(1, part));
  return `rgb(${x.map((v, i) => Math.round(v + (y[i]! - v) * t)).join(",")})`;
}

/** pen makes a canvas as large as it is shown, and returns what draws on it. */
export function pen(canvas: HTMLCanvasElement): { c: CanvasRenderingContext2D; w: number; h: number } {
  const { clientWidth: w, clientHeight: h } = canvas;
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(w * scale) || canvas.height !== Math.round(h * scale)) {
    canvas.width = Math.round(w * scale);
    canvas.height = Math.round(h * scale);
  }
  const c = canvas.getContext("2d");
  if (!c) throw new Error("This browser does not draw.");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, w, h);
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";
  return { c, w, h };
}

/** fitted returns text cut to a width, at its end or, for what begins alike, at its beginning. */
export function fitted(c: CanvasRenderingContext2D, text: string, width: number, keepEnd = false): string {
  if (c.measureText(text).width <= width) return text;
  const part = (n: number): string => keepEnd ? "…" + text.slice(text.length - n) : text.slice(0, n) + "…";
  let lo = 0, hi = text.length;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (c.measureText(part(mid)).width <= width) lo = mid; else hi = mid - 1;
  }
  return lo === 0 ? "" : part(lo);
}

/** title writes what a part of a picture is, over whatever lines there are. */
export function title(c: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  c.textAlign = "left";
  c.fillStyle = colour("bg");
  c.fillRect(x - 3, y - 8, c.measureText(text).width + 6, 16);
  c.fillStyle = colour("muted");
  c.fillText(text, x, y);
}

/** box draws a rectangle with round corners where there is room for them. */
export function box(c: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
  c.beginPath();
  c.roundRect(x, y, w, h, Math.max(0, Math.min(4, w / 3, h / 3)));
}
