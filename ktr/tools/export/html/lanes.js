'use strict';
/*
 * lanes.js - what is drawn: rows of CPUs, disks and threads, made from the samples of a trace. Needs no page.
 *
 * A lane has parts, which do not overlap: from, to, and the sample each is of. busy[i] is how long the parts before part i
 * took that count as busy, so that a place with many short parts can be drawn by how busy it was.
 */

const DEPTH_MAX = 12;

/** @param {number[]} ids samples, which do not overlap */
function lane_make(samples, ids, is_busy) {
  const id = Uint32Array.from(ids);
  if (id.some((sample, i) => i > 0 && samples.from[sample] < samples.from[id[i - 1]])) {
    id.sort((a, b) => samples.from[a] - samples.from[b] || samples.to[a] - samples.to[b]);
  }
  const n = id.length, lane = { n, id, from: new Float64Array(n), to: new Float64Array(n), busy: new Float64Array(n + 1) };
  for (let i = 0; i < n; i++) {
    lane.from[i] = samples.from[id[i]];
    lane.to[i] = samples.to[id[i]];
    lane.busy[i + 1] = lane.busy[i] + (is_busy(id[i]) ? lane.to[i] - lane.from[i] : 0);
  }
  return lane;
}

/** Lanes of what may be within one another, the outermost first. @param {number[]} ids samples */
function lanes_nested(samples, ids) {
  const sorted = ids.sort((a, b) => samples.from[a] - samples.from[b] || samples.to[b] - samples.to[a] || a - b);
  const open = [], levels = [];
  for (const id of sorted) {
    while (open.length > 0 && samples.to[open[open.length - 1]] <= samples.from[id]) open.pop();
    if (open.length < DEPTH_MAX) (levels[open.length] = levels[open.length] || []).push(id);
    open.push(id);
  }
  return levels.map((level) => lane_make(samples, level, () => true));
}

/** Lanes of what may overlap: each part in the first lane that has room. @param {number[]} ids samples */
function lanes_stacked(samples, ids) {
  const sorted = ids.sort((a, b) => samples.from[a] - samples.from[b] || a - b), ends = [], levels = [];
  for (const id of sorted) {
    let level = ends.findIndex((end) => end <= samples.from[id]);
    if (level < 0) level = Math.min(ends.length, DEPTH_MAX - 1);
    ends[level] = samples.to[id];
    (levels[level] = levels[level] || []).push(id);
  }
  return levels.map((level) => lane_make(samples, level, () => true));
}

/** Which thread each line of who is of, by serial: {tid, name: the last, names, idle}. */
function threads_find(trace) {
  const threads = new Map();
  for (const who of trace.who) {
    if (who === null || who.serial === 0) continue;
    let t = threads.get(who.serial);
    if (t === undefined) {
      t = { kind: 'thread', serial: who.serial, tid: who.tid, names: [], idle: false, states: [], calls: [], events: [] };
      threads.set(who.serial, t);
    }
    t.idle = t.idle || who.idle;
    t.name = who.name;
    if (!t.names.includes(who.name)) t.names.push(who.name);
  }
  return threads;
}

/** Everything that is drawn. */
function lanes_find(trace) {
  const { samples, events, head } = trace, kinds = head.kinds;
  const threads = threads_find(trace), disks = new Map();
  const of_line = trace.who.map((who) => (who && who.serial ? threads.get(who.serial) : null));
  const cpus = Array.from({ length: head.cpus }, (_, n) => ({ kind: 'cpu', n, runs: [], irqs: [], gaps: trace.gaps.filter((g) => g.cpu === n) }));
  const nests = [kinds.call, kinds.function, kinds.fault], wakeups = [];
  for (let i = 0; i < samples.n; i++) {
    const kind = samples.kind[i], t = of_line[samples.who[i]], cpu = cpus[samples.cpu[i]];
    if (kind === kinds.cpu && cpu) cpu.runs.push(i);
    else if (kind === kinds.irq && cpu) cpu.irqs.push(i);
    else if (kind === kinds.state && t) t.states.push(i);
    else if (nests.includes(kind) && t) t.calls.push(i);
    else if (kind === kinds.wakeup) wakeups.push(i);
    else if (kind === kinds.bio) {
      const device = trace.strings[samples.text[i]];
      disks.set(device, [...(disks.get(device) || []), i]);
    }
  }
  for (let i = 0; i < events.n; i++) if (of_line[events.who[i]]) of_line[events.who[i]].events.push(i);
  const running = (i) => ['running', 'spinning'].includes(trace.strings[samples.text[i]]);
  const is_work = (i) => samples.who[i] > 0 && !trace.who[samples.who[i]].idle;
  for (const cpu of cpus) Object.assign(cpu, { runs: lane_make(samples, cpu.runs, is_work), irqs: lane_make(samples, cpu.irqs, () => true) });
  for (const t of threads.values()) {
    Object.assign(t, { states: lane_make(samples, t.states, running), calls: lanes_nested(samples, t.calls), events: Uint32Array.from(t.events) });
    t.times = Float64Array.from(t.events, (i) => events.ns[i]);
  }
  return {
    cpus, threads, of_line, wakeups: wakeups_find(trace, wakeups, of_line),
    disks: [...disks].map(([name, ids]) => ({ kind: 'disk', name, lanes: lanes_stacked(samples, ids) })),
  };
}

/** Each wakeup from the waker's event to the run that it caused, in the order of the runs. @param {number[]} ids */
function wakeups_find(trace, ids, of_line) {
  const { events, samples, wakes } = trace, times = Float64Array.from(wakes.map((wake) => events.ns[wake.event]));
  const found = [];
  for (const id of ids) {
    const t = of_line[samples.who[id]];
    let i = first_at(times, samples.from[id]);
    while (i < wakes.length && times[i] === samples.from[id] && of_line[wakes[i].who] !== t) i++;
    if (i < wakes.length && times[i] === samples.from[id]) found.push({ event: wakes[i].event, from: times[i], to: samples.to[id], thread: t });
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
