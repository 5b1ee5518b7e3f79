// What the server says, and how it is asked. Names are those of package pandoview.

export interface Level { name: string; nodes: number; bytes: number; room: number }
/** all nodes of a type */
export interface Kind { name: string; nodes: number; bytes: number; used: number; room: number }
export interface Part { name: string; bytes: number }
export interface Description {
  name: string; key: string; value: string; entries: number; layout: string; device: string; path: string;
  mutable: boolean; kernel: boolean; changes: boolean; radix: boolean; latched: boolean; levels: Level[]; types?: Kind[]; memory: Part[]; total: number;
}
/** first, end, used, room, state, hops */
export type Group = [number, number, number, number, number, number];
export interface Strip { nodes: number; from: number; step: number; groups: Group[]; keys?: string[][] }
export interface Viewed { lo: number; hi: number; last: number; levels: Strip[] }
export interface Node {
  level: number; node: number; kind: string; name?: string; first: number; end: number; child: number; children: number;
  used: number; room: number; bytes: number; entry: number; entries: number; state?: string; link: number; hops: number; version?: number;
  keys: string[]; values?: string[]; holds: boolean; partials?: string[]; bits?: number[]; lines?: number[]; perLine: number; notes?: string[];
}
export interface Visit extends Node { slot: number; here: boolean; note?: string }
export interface Found { key: string; found: boolean; value: string; way: Visit[] }
export interface Stated {
  id: string; level: number; used: number; room: number; low?: string; high: string; next?: string; children?: string[];
  lines?: number[]; state?: string; told: boolean;
}
export interface TreeEvent { step: string; key?: string; at: string[]; nodes: Stated[]; gone?: string[]; root: string }
export interface TreeSteps { note: string; dropped: number; events: TreeEvent[] }
/** lane, level or -1, node or query, 1 if it was there before */
export type LaneAt = [number, number, number, number];
export interface KernelStep { turn: number; block: number; warp: number; line: number; what: string; lanes: LaneAt[] }
export interface KernelSteps {
  seed: number; note: string; names: string[]; blocks: number; threads: number; work: number; dropped: number;
  keys: string[]; ranks: number[]; levels: Level[]; turns: [number, number, number, number][]; steps: KernelStep[];
}
export interface LatchedNode {
  id: number; level: number; used: number; low: string; high: string; next: number; children?: number[]; holder: number; told: boolean;
}
/** other is a node or a tile, ran the turns of each tile since the step before */
export interface LatchedStep {
  step: string; tile: number; op: number; node: number; other: number; turn: number; ran: number[]; retry?: boolean; nodes: LatchedNode[];
}
export interface LatchedSteps {
  seed: number; schedule: string; note: string; name: string; tiles: number; room: number; turns: number; work: number; dropped: number;
  ops: { kind: string; key: string; found: boolean }[]; steps: LatchedStep[];
}
export interface RadixNode {
  id: number; type: string; room: number; depth: number; prefix: string; links: { byte: string; to: number; leaf: boolean }[];
}
export interface RadixEvent {
  step: string; key?: string; at: number[]; byte?: string; was?: string; nodes: RadixNode[]; gone?: number[]; root: number;
}
export interface RadixSteps { note: string; dropped: number; events: RadixEvent[] }
export interface Pulse {
  at: number; entries: number; bytes: number; kept: number; leaves: number; uppers: number; retired: number; pending: number;
  dirty: number; height: number; epoch: number; generation: number; sample: [number, number, number, number][];
}

/** ask gets an answer, or throws an error whose message is for people. */
export async function ask<T>(what: string, params: Record<string, string | number> = {}, signal?: AbortSignal): Promise<T> {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) query.set(k, String(v));
  let answer: Response;
  try {
    answer = await fetch(`api/${what}?${query}`, { signal });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Error("The server does not answer any more: is the program still running?");
  }
  const body: unknown = await answer.json().catch((e: unknown) => {
    if (signal?.aborted || answer.ok) throw e; // no answer, or half of one
    return {};
  });
  if (!answer.ok) throw new Error((body as { error?: string }).error ?? `The server answers with ${answer.status}.`);
  return body as T;
}
