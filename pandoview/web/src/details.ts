// A node in words and keys, and the memory of the index.

import type { Description, Found, Node } from "./api";
import { byID, bytes, count, el, list, plural } from "./dom";

/** showNode shows a node in the panel beside the picture. */
export function showNode(n: Node, ix: Description, found: Found | undefined, go: (level: number, node: number) => void): void {
  const panel = byID("details");
  const of = ix.levels[n.level];
  const rows: [string, string][] = [["node", `${count(n.node)} of ${count(of?.nodes ?? 0)}`]];
  if (n.name) rows.push(["is", n.name]);
  rows.push([n.holds ? "entries" : ix.types ? "links" : "separators", `${count(n.used)} of ${count(n.room)}`]);
  if (n.bytes) rows.push(["bytes", count(n.bytes)]);
  if (n.entry >= 0) rows.push(["first entry", count(n.entry)]);
  if (!n.holds && n.entries >= 0) rows.push(["entries below", count(n.entries)]);
  if (n.children) rows.push(["children", `${count(n.child)} to ${count(n.child + n.children - 1)}`]);
  if (n.state) rows.push(["state", n.state]);
  if (n.version) rows.push(["version", count(n.version)]);
  if (n.hops) rows.push(["not in the parent yet", plural(n.hops, "leaf", "leaves")]);
  panel.replaceChildren(el("h2", {}, `${n.kind}, level ${n.level}`), list(rows));
  const bar = el("div", { class: "fill", role: "img", "aria-label": `${percent(n)} full` }, el("i"));
  (bar.firstElementChild as HTMLElement).style.width = percent(n);
  panel.append(bar);
  if (n.lines?.length) panel.append(el("p", { class: "muted" }, `Its ${n.lines.length} cache lines, ${n.perLine} pairs each:`), lines(n));
  for (const note of n.notes ?? []) panel.append(el("p", { class: "muted" }, note));
  const links = el("p");
  if (n.children) links.append(jump("First child", () => go(n.level + 1, n.child)), " ");
  if (n.link >= 0) links.append(jump("Side link →", () => go(n.level, n.link)));
  if (links.childNodes.length) panel.append(links);
  if (n.bits?.length) panel.append(el("p", { class: "muted" }, `Bits of a string that are compared, by byte:`), bits(n.bits));
  panel.append(keys(n, found));
}

const percent = (n: Node): string => `${Math.round(n.room ? 100 * n.used / n.room : 0)}%`;

function jump(text: string, go: () => void): HTMLElement {
  const b = el("button", { type: "button" }, text);
  b.onclick = go;
  return b;
}

function lines(n: Node): HTMLElement {
  const grid = el("div", { class: "lines", role: "img", "aria-label": `entries in each line: ${n.lines!.join(", ")}` });
  for (const m of n.lines!) {
    const b = el("b");
    b.style.height = `${100 * m / n.perLine}%`;
    grid.append(el("i", { title: `${m} of ${n.perLine}` }, b));
  }
  return grid;
}

/** bits shows which bits of a string a page compares, byte by byte. */
export function bits(all: number[]): HTMLElement {
  const box = el("div", { class: "bits" });
  const on = new Set(all);
  for (const byte of new Set(all.map(b => Math.floor(b / 8)))) {
    const cell = el("span", { title: `byte ${byte}` }, el("em", {}, String(byte)));
    for (let b = 0; b < 8; b++) cell.append(el("i", on.has(byte * 8 + b) ? { class: "on" } : {}));
    box.append(cell);
  }
  return box;
}

function keys(n: Node, found: Found | undefined): HTMLElement {
  const box = el("div", { class: "keys", tabindex: "0", role: "list", "aria-label": n.holds ? "entries" : "separators" });
  n.keys.forEach((k, i) => {
    const hit = found && n.holds && k === found.key, value = n.values?.[i], partial = n.partials?.[i];
    const title = partial === undefined ? k : `${k}\nbits compared: ${partial} (hexadecimal)`;
    const text = el("span", hit ? { class: "hit", title } : { title }, k);
    if (value !== undefined) text.append(el("em", { title: value }, ` → ${value}`));
    box.append(el("span", {}, String(n.holds && n.entry >= 0 ? count(n.entry + i) : i)), text);
  });
  if (n.keys.length === 0) box.append(el("span"), el("span", {}, "no keys"));
  return box;
}

/** showTypes shows how many nodes there are of each type, and how full they are. */
export function showTypes(ix: Description): void {
  const panel = byID("types");
  panel.hidden = !ix.types?.length;
  if (!ix.types) return;
  const table = el("table", {}, el("tr", {}, ...["type", "nodes", "bytes", "full"].map(h => el("th", { scope: "col" }, h))));
  for (const t of ix.types) {
    const part = `${Math.round(100 * t.used / Math.max(1, t.room))}%`;
    const bar = el("div", { class: "fill", role: "img", "aria-label": `${part} full`, title: part }, el("i"));
    (bar.firstElementChild as HTMLElement).style.width = part;
    table.append(el("tr", {}, el("td", {}, t.name), el("td", {}, count(t.nodes)), el("td", {}, bytes(t.bytes)), el("td", {}, bar)));
  }
  panel.replaceChildren(el("h2", {}, "Inner nodes by type"), table);
}

const shades = ["w0", "w3", "w1", "w2", "w5", "w6", "w4", "w7"];

/** showMemory shows what the index takes, part by part. */
export function showMemory(ix: Description): void {
  const stack = el("div", { class: "stack", role: "img", "aria-label": "memory by part" });
  const dl = el("dl");
  const sum = ix.memory.reduce((s, p) => s + p.bytes, 0) || 1;
  ix.memory.forEach((p, i) => {
    const piece = el("i", { title: `${p.name}: ${bytes(p.bytes)}` });
    piece.style.cssText = `width:${100 * p.bytes / sum}%;background:var(--${shades[i % shades.length]})`;
    stack.append(piece);
    const swatch = el("i", { class: "swatch" });
    swatch.style.background = `var(--${shades[i % shades.length]})`;
    dl.append(el("dt", {}, swatch, p.name), el("dd", {}, bytes(p.bytes)));
  });
  dl.append(el("dt", {}, "in all"), el("dd", {}, bytes(ix.total)));
  if (ix.entries) dl.append(el("dt", {}, "per entry"), el("dd", {}, `${(ix.total / ix.entries).toFixed(2)} bytes`));
  byID("memory").replaceChildren(el("h2", {}, "Memory"), stack, dl);
}
