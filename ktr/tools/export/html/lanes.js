'use strict';
/*
 * lanes.js - what is drawn: rows of CPUs, disks and threads, made from the samples of a trace. Needs no page.
 *
 * A lane has parts, which do not overlap: from, to, and the sample each is of. busy[i] is how long the parts before part i
 * took that count as busy, so that a place with many short parts can be drawn by how busy it was.
 */

const DEPTH_MAX = 12;

/** @param {Uint32Array} id samples, which do not overlap, in their order */
function lane_make(samples, id, is_busy) {
  const n = id.length, lane = { n, id, from: new Float64Array(n), to: new Float64Array(n), busy: new Float64Array(n + 1) };
  for (let i = 0; i < n; i++) {
    lane.from[i] = samples.from[id[i]];
    lane.to[i] = samples.to[id[i]];
    lane.busy[i + 1] = lane.busy[i] + (is_busy(id[i]) ? lane.to[i] - lane.from[i] : 0);
  }
  return lane;
}

/** Lanes of what may be within one another, the outermost first. @param {Uint32Array} ids samples, in the order of their ends */
function lanes_nested(samples, ids) {
  const open = [], levels = [];
  for (let i = ids.length - 1; i >= 0; i--) {
    while (open.length > 0 && samples.from[open[open.length - 1]] >= samples.to[ids[i]]) open.pop();
    if (open.length < DEPTH_MAX) (levels[open.length] = levels[open.length] || []).push(ids[i]);
    open.push(ids[i]);
  }
  return levels.map((level) => lane_make(samples, Uint32Array.from(level.reverse()), () => true));
}

/** What another array has at the places that an array names. */
function mapped(places, array, made) {
  for (let i = 0; i < places.length; i++) made[i] = array[places[i]];
  return made;
}

/** The numbers from 0 on, in lists: list_of[i] is that of i, or -1. @param {Int32Array} list_of */
function lists_make(list_of, count) {
  const sizes = new Uint32Array(count);
  for (let i = 0; i < list_of.length; i++) if (list_of[i] >= 0) sizes[list_of[i]]++;
  const lists = Array.from(sizes, (size) => new Uint32Array(size));
  sizes.fill(0);
  for (let i = 0; i < list_of.length; i++) if (list_of[i] >= 0) lists[list_of[i]][sizes[list_of[i]]++] = i;
  return lists;
}

/** A disk: each piece is in the first lane that has room, or else not drawn, but counted. @param {number[]} ids samples */
function disk_make(samples, name, ids) {
  const sorted = ids.sort((a, b) => samples.from[a] - samples.from[b] || a - b), ends = new Float64Array(DEPTH_MAX).fill(-Infinity), levels = [];
  let left = 0;
  for (const id of sorted) {
    const level = ends.findIndex((end) => end <= samples.from[id]);
    if (level < 0) left++;
    else (levels[level] = levels[level] || []).push(id);
    ends[level] = samples.to[id]; // of -1 nothing is kept
  }
  return { kind: 'disk', name, left, lanes: levels.map((level) => lane_make(samples, Uint32Array.from(level), () => true)) };
}

/** Which thread each line of who is of, by serial: {tid, name: the last, names, idle}. */
function threads_find(trace) {
  const threads = new Map();
  for (const who of trace.who) {
    if (who === null || who.serial === 0 || who.kind === 2) continue; // names of holders may be older
    let t = threads.get(who.serial);
    if (t === undefined) {
      t = { kind: 'thread', n: threads.size, tid: who.tid, names: new Set(), idle: false };
      threads.set(who.serial, t);
    }
    t.idle = t.idle || who.idle;
    t.name = who.name;
    t.names.add(who.name);
  }
  return threads;
}

/** Everything that is drawn. */
function lanes_find(trace) {
  const { samples, events, head, strings } = trace, kinds = head.kinds;
  const threads = threads_find(trace), disks = [], wakeups = [];
  const of_line = trace.who.map((who) => (who && threads.get(who.serial)) || null);
  /* Each CPU, and after them each thread, has two lists: what it ran, and interrupts; its states, and what it called. */
  const list_of = new Int32Array(samples.n).fill(-1), after = 2 * head.cpus;
  const list_of_line = Int32Array.from(of_line.map((t) => (t ? after + 2 * t.n : -1)));
  const nests = [kinds.call, kinds.function, kinds.fault];
  for (let i = 0; i < samples.n; i++) {
    const kind = samples.kind[i], list = list_of_line[samples.who[i]];
    if ((kind === kinds.cpu || kind === kinds.irq) && samples.cpu[i] < head.cpus) list_of[i] = 2 * samples.cpu[i] + (kind === kinds.irq ? 1 : 0);
    else if (kind === kinds.state) list_of[i] = list;
    else if (list >= 0 && (kind === nests[0] || kind === nests[1] || kind === nests[2])) list_of[i] = list + 1;
    else if (kind === kinds.wakeup) wakeups.push(i);
    else if (kind === kinds.bio) (disks[samples.text[i]] = disks[samples.text[i]] || []).push(i);
  }
  const lists = lists_make(list_of, after + 2 * threads.size);
  const thread_of_line = Int32Array.from(of_line.map((t) => (t ? t.n : -1)));
  const of_threads = lists_make(mapped(events.who, thread_of_line, new Int32Array(events.n)), threads.size);
  const runs = strings.map((text) => text === 'running' || text === 'spinning');
  const is_work = (i) => samples.who[i] > 0 && !trace.who[samples.who[i]].idle;
  const cpus = Array.from({ length: head.cpus }, (_, n) => ({
    kind: 'cpu', n, gaps: trace.gaps.filter((g) => g.cpu === n), runs: lane_make(samples, lists[2 * n], is_work),
    irqs: lanes_nested(samples, lists[2 * n + 1])[0] || lane_make(samples, new Uint32Array(0), () => true),
  }));
  for (const t of threads.values()) {
    t.states = lane_make(samples, lists[after + 2 * t.n], (i) => runs[samples.text[i]]);
    t.calls = lanes_nested(samples, lists[after + 2 * t.n + 1]);
    t.events = of_threads[t.n];
    t.times = mapped(t.events, events.ns, new Float64Array(t.events.length));
  }
  const arrows = wakeups_find(trace, wakeups, of_line);
  return {
    cpus, threads, of_line, wakeups: arrows, wakeup_ends: Float64Array.from(arrows, (wake) => wake.to),
    disks: Object.entries(disks).map(([text, ids]) => disk_make(samples, strings[Number(text)], ids)),
  };
}

/** Each wakeup from the waker's event to the run that it caused, in the order of the runs. @param {number[]} ids */
function wakeups_find(trace, ids, of_line) {
  const { events, samples, wakes } = trace, found = [], first = new Map();
  const key = (ns, t) => `${ns} ${t && t.n}`;
  for (const { event, who } of wakes.slice().reverse()) first.set(key(events.ns[event], of_line[who]), event);
  for (const id of ids) {
    const thread = of_line[samples.who[id]], from = samples.from[id], event = first.get(key(from, thread));
    if (event !== undefined) found.push({ event, from, to: samples.to[id], thread });
  }
  return found;
}

/** The part of a lane that is there at a time, or -1. */
function part_at(lane, ns) {
  let i = first_at(lane.to, ns);
  while (i < lane.n && lane.to[i] === ns && i + 1 < lane.n && lane.from[i + 1] <= ns) i++;
  return i < lane.n && lane.from[i] <= ns ? i : -1;
}

/** What a sample is, in a few words. */
function sample_name(trace, id) {
  const { samples, strings, head, who } = trace, kinds = head.kinds;
  const text = strings[samples.text[id]], more = strings[samples.more[id]], t = who[samples.who[id]];
  switch (samples.kind[id]) {
    case kinds.cpu: return t === null ? 'not known' : t.idle ? 'idle' : `${t.name} ${t.tid}`;
    case kinds.state: return more ? `${text} ${text === 'spinning' || text === 'running' ? 'for' : 'on'} ${more}` : text;
    case kinds.call: return `${text}()${samples.value[id] ? ' failed' : ''}`;
    case kinds.fault: return `page fault: ${text}`;
    case kinds.bio: return `${more} ${samples.value[id]} bytes`;
    default: return text || '';
  }
}
