'use strict';
/* data.js - the trace: arrays made from the columns that the page carries (ktr/tools/export/html.h). Needs no page. */

/** Reads numbers from a column: seven bits a byte, the lowest first. */
class Numbers {
  /** @param {Uint8Array} bytes */
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  next() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let unit = 0x80; byte >= 0x80; unit *= 0x80) {
      byte = bytes[this.at++];
      value += (byte & 0x7f) * unit;
    }
    return value;
  }

  /** The lowest bit is the sign. */
  signed() {
    const value = this.next();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }

  /** All 64 bits. */
  big() {
    let value = 0n, shift = 0n, byte;
    do {
      byte = this.bytes[this.at++];
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
    } while (byte >= 0x80);
    return value;
  }

  big_signed() {
    const value = this.big();
    return value >> 1n ^ -(value & 1n);
  }

  skip() {
    while (this.bytes[this.at++] >= 0x80);
  }
}

/** The bytes of a column. @param {string} base64 */
async function column_read(base64) {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new globalThis.DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The lines of a column of JSON. @param {Uint8Array} bytes */
function lines_read(bytes) {
  return new TextDecoder().decode(bytes).split('\n').filter((line) => line).map((line) => JSON.parse(line));
}

/** The n numbers of a column, in an array made by `make`, or, if each is a byte, as they are. @param {Uint8Array} bytes */
function numbers_read(bytes, n, make) {
  if (bytes.length === n) return bytes;
  const array = make(n), from = new Numbers(bytes);
  for (let i = 0; i < n; i++) array[i] = from.next();
  return array;
}

const TIME_UNIT = 10n ** 15n;
const whole = (n) => new Uint32Array(n), large = (n) => new Float64Array(n);

/** How many numbers a column has. @param {Uint8Array} bytes */
function numbers_count(bytes) {
  let n = 0;
  for (let i = 0; i < bytes.length; i++) n += bytes[i] < 0x80 ? 1 : 0;
  return n;
}

/** Of each event. ns never descends; raw are the times as they were recorded. seq counts from the CPU's first event. */
function events_read(columns, sites, base) {
  const n = numbers_count(columns['event.cpu']);
  const cpu = numbers_read(columns['event.cpu'], n, whole);
  const site = numbers_read(columns['event.site'], n, whole);
  const raw = new Float64Array(n), ns = new Float64Array(n), seq = new Float64Array(n);
  const who = new Uint32Array(n), args = new Uint32Array(n);
  const times = new Numbers(columns['event.ns']), numbers = new Numbers(columns['event.seq']);
  const threads = new Numbers(columns['event.who']), values = new Numbers(columns['event.args']);
  const last_who = new Uint32Array(65536), last_seq = new Float64Array(65536), first_seq = [];
  for (let i = 0, time = 0, now = -Infinity; i < n; i++) {
    raw[i] = time = i > 0 ? time + times.signed() : Number(times.big_signed() - base);
    ns[i] = now = Math.max(now, time);
    if (first_seq[cpu[i]] === undefined) first_seq[cpu[i]] = numbers.big_signed() + 1n;
    else seq[i] = last_seq[cpu[i]] += numbers.signed() + 1;
    who[i] = last_who[cpu[i]] = threads.next() || last_who[cpu[i]];
    args[i] = values.at;
    for (const is_string of sites[site[i]].strings) {
      if (!is_string) values.skip();
      else if (values.next() === 0) values.skip();
    }
  }
  return { n, cpu, site, raw, ns, seq, first_seq, who, args, bytes: columns['event.args'] };
}

function samples_read(columns, events, base) {
  const n = numbers_count(columns['sample.kind']);
  const of = (name, make) => numbers_read(columns[`sample.${name}`], n, make);
  const at = of('at', whole), ns = of('ns', large);
  const from = new Float64Array(n), to = new Float64Array(n), ends = new Numbers(columns['sample.to']);
  for (let i = 0, seen = 0; i < n; i++) {
    seen += at[i];
    to[i] = seen > 0 ? events.raw[seen - 1] + ends.signed() : Number(ends.big_signed() - base);
    from[i] = to[i] - ns[i];
  }
  return {
    n, from, to, kind: of('kind', whole), flags: of('flags', whole), who: of('who', whole), cpu: of('cpu', whole), text: of('text', whole),
    more: of('more', whole), place: of('place', whole), value: of('value', large), queued: of('queued', large),
  };
}

function gaps_read(columns, base) {
  const from = new Numbers(columns['gap.from']), ns = new Numbers(columns['gap.ns']);
  const cpu = new Numbers(columns['gap.cpu']), reason = new Numbers(columns['gap.reason']), count = new Numbers(columns['gap.count']);
  const gaps = [];
  while (cpu.at < cpu.bytes.length) {
    const since = Number(from.big_signed() - base);
    gaps.push({ cpu: cpu.next(), reason: reason.next(), count: count.next(), from: since, to: since + ns.signed() });
  }
  return gaps;
}

/** Each wakeup: the event that tells it, and the line of who was woken. */
function wakes_read(columns) {
  const at = new Numbers(columns['wake.at']), who = new Numbers(columns['wake.who']);
  const wakes = [];
  for (let seen = 0; at.at < at.bytes.length;) {
    seen += at.next();
    wakes.push({ event: seen - 1, who: who.next() });
  }
  return wakes;
}

/**
 * A trace. Lines of who, strings and places count from 1. Times count from base on, nanoseconds since boot: numbers are exact below 2^53.
 * @param {Record<string, string>} texts columns in base64
 */
async function trace_read(texts) {
  const columns = Object.fromEntries(await Promise.all(Object.keys(texts).map(async (name) => [name, await column_read(texts[name])])));
  const sites = lines_read(columns.site);
  for (const site of sites) {
    site.strings = site.params ? site.params.map((p) => p[1] === 0) : new Array(site.count).fill(false);
    site.place = site.params ? `${site.file}:${site.line}` : '';
  }
  const who = [null, ...lines_read(columns.who).map(([serial, tid, name, kind]) => ({ serial, tid, name, kind, idle: kind === 1 }))];
  const places = [{ pc: 0n, names: [null, null] }, ...lines_read(columns.place).map(([pc, ...names]) => ({ pc: BigInt(pc), names }))];
  const head = JSON.parse(new TextDecoder().decode(columns.head));
  const [from, to] = [head.from, head.to].map((ns) => BigInt.asIntN(64, BigInt(ns))), base = from / TIME_UNIT * TIME_UNIT;
  Object.assign(head, { from: Number(from - base), to: Number(to - base) });
  const events = events_read(columns, sites, base);
  return {
    head, base, sites, who, places, strings: [null, ...lines_read(columns.string)], events, samples: samples_read(columns, events, base),
    gaps: gaps_read(columns, base), wakes: wakes_read(columns),
  };
}

/** The first index of an ascending array whose value is not less than v. */
function first_at(array, v, low = 0, high = array.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] < v) low = middle + 1;
    else high = middle;
  }
  return low;
}
