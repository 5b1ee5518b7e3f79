// The page: tabs, the search, keys.

import { ask, type Description, type Found } from "./api";
import { byID, bytes, el, list, plural, trouble } from "./dom";
import { showMemory, showTypes } from "./details";
import { Live } from "./live";
import { Steps } from "./steps";
import { TreeView } from "./tree";

type Tab = "tree" | "steps" | "live";

async function start(): Promise<void> {
  const ix = await ask<Description>("index");
  describe(ix);
  const tree = new TreeView(ix);
  const steps = new Steps(ix);
  const live = new Live(ix.levels[ix.levels.length - 1]!.room, !!ix.types, () => void ask<Description>("index").then(now => { describe(now); tree.update(now); }, trouble));
  let tab: Tab = "tree";
  const show = (to: Tab): void => {
    if (to === "live" && !ix.mutable) return;
    tab = to;
    for (const t of ["tree", "steps", "live"] as const) {
      byID(`${t}-panel`).hidden = t !== to;
      byID(`tab-${t}`).setAttribute("aria-selected", String(t === to));
      byID(`tab-${t}`).tabIndex = t === to ? 0 : -1;
    }
    if (to !== "steps") steps.pause();
    if (to === "live") live.start(); else live.stop();
  };
  byID("tab-live").hidden = !ix.mutable;
  byID("watching").parentElement!.hidden = !ix.changes; // nothing records the others' changes
  for (const t of ["tree", "steps", "live"] as const) byID(`tab-${t}`).onclick = () => show(t);
  search(tree);
  keys(k => tab === "tree" ? tree.key(k) : tab === "steps" ? steps.key(k) : false, show);
  show("tree");
  if (ix.mutable) window.setInterval(() => {
    if (tab === "tree" && !document.hidden) void ask<Description>("index").then(now => { describe(now); tree.update(now); }, trouble);
  }, 2000);
}

function describe(ix: Description): void {
  byID("name").textContent = ix.name || (ix.mutable ? "Tree" : "Frozen");
  document.title = `${ix.name || "index"} · Pando`;
  byID("summary").textContent = `${plural(ix.entries, "entry", "entries")}, ${ix.key} → ${ix.value} · ${ix.layout} · ${plural(ix.levels.length, "level")} · ${bytes(ix.total)} · ${ix.device}, ${ix.path}`;
  showMemory(ix);
  showTypes(ix);
}

function search(tree: TreeView): void {
  const input = byID<HTMLInputElement>("key"), result = byID("result"), clear = byID("clear");
  const wipe = (): void => {
    result.hidden = clear.hidden = true;
    tree.way(undefined);
  };
  clear.onclick = () => { input.value = ""; wipe(); };
  byID<HTMLFormElement>("search").onsubmit = async e => {
    e.preventDefault();
    try {
      const f = await ask<Found>("search", { key: input.value });
      result.hidden = clear.hidden = false;
      result.replaceChildren(el("h2", {}, "Search"), list([
        ["key", f.key], ["found", f.found ? "yes" : "no"], ...(f.found ? [["value", f.value] as [string, string]] : []), ["nodes read", String(f.way.length)],
      ]));
      for (const v of f.way) if (v.note) result.append(el("p", { class: "muted" }, `${v.kind} ${v.node}: ${v.note}.`));
      tree.way(f);
      trouble(null);
    } catch (e) {
      trouble(e);
    }
  };
  input.addEventListener("keydown", e => { if (e.key === "Escape") { wipe(); byID("tree").focus(); } });
}

function keys(handle: (e: KeyboardEvent) => boolean, show: (t: Tab) => void): void {
  const dialog = byID<HTMLDialogElement>("keys");
  byID("help").onclick = () => dialog.showModal();
  document.addEventListener("keydown", e => {
    const on = e.target as HTMLElement;
    const typing = on.matches("input:not([type=range]), select, textarea");
    if (typing || dialog.open || e.ctrlKey || e.metaKey || e.altKey) return;
    if (on.matches("button, [role=tab], a, .keys") && (e.key === " " || e.key === "Enter")) return;
    const tabs: Record<string, Tab> = { t: "tree", s: "steps", l: "live" };
    const to = tabs[e.key];
    if (to) show(to);
    else if (e.key === "/") { show("tree"); byID<HTMLInputElement>("key").focus(); byID<HTMLInputElement>("key").select(); }
    else if (e.key === "?") dialog.showModal();
    else if (!handle(e)) return;
    e.preventDefault();
  });
}

start().catch(trouble);
