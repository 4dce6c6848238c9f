'use strict';
/*
 * table.js - the tables of `ktrdump report --since --until` over a stretch of the trace. The descriptions of the tables
 * are those of ktr/tools/report/tables.c; rows are added up and sorted as in table.c. Needs no page.
 */

const CELL = { COUNT: 0, TOTAL: 1, MAX: 2, WHEN: 3, VALUE: 4, BELOW: 5 };
const KEY = { THREAD: 1, CPU: 2, PC: 4, TEXT: 8, MORE: 16, EACH: 64 };
const DECADES = 7, BUCKETS = 62 * 8, WORST_ROWS = 10, WAIT_WEIGHT = 2 ** 52;
const FLAG = { UNTIMED: 1, PREEMPTED: 2, MOVED: 4 };

/** What is computed from the cells, after them: the mean, the median, the 99th percentile. */
const COMPUTED = [
  (row) => (row.cells[CELL.COUNT] > 0 ? Math.floor(row.cells[CELL.TOTAL] / row.cells[CELL.COUNT]) : 0),
  (row) => quantile(row, 50),
  (row) => quantile(row, 99),
];

function bucket_of(ns) {
  if (ns < 8) return ns;
  let log = Math.floor(Math.log2(ns));
  if (2 ** log > ns) log--;
  if (2 ** (log + 1) <= ns) log++;
  return (log - 2) * 8 + Math.floor(ns / 2 ** (log - 3)) % 8;
}

function bucket_end(i) {
  return i < 8 ? i : (8 + i % 8 + 1) * 2 ** (Math.floor(i / 8) - 1) - 1;
}

function quantile(row, percent) {
  const rank = Math.floor((row.cells[CELL.COUNT] * percent + 99) / 100);
  for (let i = 0, seen = 0; row.buckets && i < BUCKETS; i++) {
    seen += row.buckets[i];
    if (seen >= rank && seen > 0) return Math.min(bucket_end(i), row.cells[CELL.MAX]);
  }
  return 0;
}

function row_cell(head, row, cell) {
  return cell < head.cells ? row.cells[cell] : COMPUTED[cell - head.cells](row);
}

function row_make(head, key) {
  return { key, cells: new Float64Array(head.cells), texts: [null, null, null], who: null, number: 0n, buckets: null, fresh: true };
}

/** An order of two texts, of which one may be missing. */
function texts_compare(a, b) {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  return a < b ? -1 : Number(a > b);
}

/** Of two rows the first one: no two rows of a table are equal. As rows_compare() of table.c. */
function rows_compare(table, l, r) {
  const a = l.cells[table.weight], b = r.cells[table.weight];
  if (a !== b) return b - a;
  const x = l.who || { tid: 0, serial: 0 }, y = r.who || { tid: 0, serial: 0 };
  if (x.tid !== y.tid) return x.tid - y.tid;
  if (l.number !== r.number) return l.number < r.number ? -1 : 1;
  for (let i = 0; i < 3; i++) {
    const order = texts_compare(l.texts[i], r.texts[i]);
    if (order !== 0) return order;
  }
  return x.serial - y.serial || l.cells[CELL.VALUE] - r.cells[CELL.VALUE];
}

function row_time(table, row, from, ns) {
  const cells = row.cells;
  if (cells[CELL.COUNT] === 1 || ns > cells[CELL.MAX]) {
    cells[CELL.MAX] = ns;
    cells[CELL.WHEN] = from;
  }
  cells[CELL.TOTAL] += ns;
  if (!table.histogram) return;
  let decade = 0;
  for (let limit = 1000; decade < DECADES - 1 && ns >= limit; limit *= 10) decade++;
  cells[CELL.BELOW + decade]++;
  row.buckets = row.buckets || new Uint32Array(BUCKETS);
  row.buckets[bucket_of(ns)]++;
}

/** The sum of rows. */
function rows_sum(head, rows) {
  const sum = row_make(head, '');
  for (const row of rows) {
    for (let i = 0; i < head.cells; i++) if (i !== CELL.MAX && i !== CELL.WHEN) sum.cells[i] += row.cells[i];
    if (row.cells[CELL.MAX] > sum.cells[CELL.MAX]) {
      sum.cells[CELL.MAX] = row.cells[CELL.MAX];
      sum.cells[CELL.WHEN] = row.cells[CELL.WHEN];
    }
    if (!row.buckets) continue;
    sum.buckets = sum.buckets || new Uint32Array(BUCKETS);
    for (let i = 0; i < BUCKETS; i++) sum.buckets[i] += row.buckets[i];
  }
  return sum;
}

/** What samples add to a row besides counts and times: as the add functions of tables.c. */
const ADD = {
  'cpu.cpus': (row, s, more, kinds) => {
    const [busy, idle, unknown, switches, preempted, migrated] = [0, 1, 2, 3, 4, 5].map((n) => more + n);
    if (s.kind === kinds.cpu) {
      row.cells[s.who === null ? unknown : s.who.idle ? idle : busy] += s.to - s.from;
      return;
    }
    row.cells[switches]++;
    row.cells[preempted] += s.flags & FLAG.PREEMPTED ? 1 : 0;
    row.cells[migrated] += s.flags & FLAG.MOVED ? 1 : 0;
  },
  'thread.threads': (row, s, more, _kinds, states) => {
    const ns = s.to - s.from;
    row.cells[more + states[s.text]] += ns;
    if (s.text !== 'unknown' && s.text !== 'sleeping') row.cells[more + states.dead] += ns;
  },
  'thread.states': (row, s, more, _kinds, states) => {
    if (row.cells[more + states.dead] === 0 && s.text !== 'sleeping') row.cells[more + states.dead] = WAIT_WEIGHT;
    row.cells[more + states.dead] += s.to - s.from;
  },
  'lock.holders': (row, s, _more, kinds) => {
    row.cells[CELL.COUNT] += (s.kind === kinds.taken ? s.value : 0) - 1;
    row.cells[CELL.TOTAL] += s.kind === kinds.held ? s.value * (s.to - s.from) : 0;
  },
  'net.connections': (row, s, more, kinds) => {
    const [sent, segments, again, received, segments_in] = [0, 1, 2, 3, 4].map((n) => more + n);
    if (s.kind === kinds.round_trip) return;
    row.cells[CELL.COUNT]--;
    row.cells[s.kind === kinds.sent ? sent : received] += s.value;
    row.cells[s.kind === kinds.sent ? segments : segments_in]++;
    row.cells[again] += s.flags & FLAG.MOVED ? 1 : 0;
  },
};
for (const name of ['io.devices', 'io.files', 'io.threads']) ADD[name] = (row, s, more) => { row.cells[more] += s.queued; };

/** The reports of a stretch. */
class Report {
  constructor(trace, since, until) {
    const head = trace.head;
    this.trace = trace;
    this.head = head;
    this.since = since;
    this.until = until;
    this.known = [0, 0]; // nanoseconds of CPUs, and of threads
    this.all = [0, 0];
    this.events = this.lost = this.gaps = this.each = 0;
    this.states = Object.fromEntries(head.states.map((name, n) => [name, n]));
    this.tables = head.tables.map((table) => ({ ...table, rows: new Map(), add: ADD[`${table.report}.${table.name}`] }));
    this.of_kind = Object.values(head.kinds).map((kind) => this.tables.filter((table) => table.of >>> kind & 1));
    this.samples_add();
    this.events_add();
    for (const table of this.tables) this.table_finish(table);
  }

  /** The samples that count, with the part that is in the stretch. */
  samples_add() {
    const { samples, who, strings, head } = this.trace, kinds = head.kinds;
    const spans = new Set([kinds.cpu, kinds.state, kinds.irq, kinds.lock, kinds.held]);
    const never_empty = new Set([kinds.cpu, kinds.state, kinds.held]);
    for (let i = 0; i < samples.n; i++) {
      const kind = samples.kind[i];
      if (samples.to[i] < this.since || samples.from[i] > this.until || (samples.to[i] > this.until && !spans.has(kind))) continue;
      const from = Math.max(samples.from[i], this.since), to = Math.min(samples.to[i], this.until);
      if (from === to && never_empty.has(kind)) continue;
      const s = {
        kind, from, to, flags: samples.flags[i], who: who[samples.who[i]], cpu: samples.cpu[i], text: strings[samples.text[i]],
        text_line: samples.text[i], more: strings[samples.more[i]], more_line: samples.more[i], place: samples.place[i], value: samples.value[i], queued: samples.queued[i],
      };
      if (kind === kinds.function || kind === kinds.state) s.value = Math.min(s.value, to - from);
      this.sample_add(s);
      if (kind === kinds.cpu) {
        this.known[0] += s.who ? to - from : 0;
        this.all[0] += to - from;
        if (s.who && !s.who.idle) this.sample_add({ ...s, kind: kinds.run });
      } else if (kind === kinds.state) {
        this.known[1] += s.text !== 'unknown' ? to - from : 0;
        this.all[1] += to - from;
        if (s.text !== 'unknown' && s.text !== 'running') this.sample_add({ ...s, kind: kinds.wait });
      }
    }
  }

  sample_add(s) {
    for (const table of this.of_kind[s.kind]) {
      const row = this.row_of(table, s), cells = row.cells;
      cells[CELL.COUNT]++;
      cells[CELL.VALUE] += s.value;
      if (!(s.flags & FLAG.UNTIMED)) row_time(table, row, s.from, s.to - s.from);
      if (table.add) table.add(row, s, this.head.more, this.head.kinds, this.states);
      if (table.worst && table.rows.size > 100 * WORST_ROWS) this.rows_prune(table);
    }
  }

  row_of(table, s) {
    const who = table.key & KEY.THREAD ? s.who : null, text = table.key & KEY.TEXT ? s.text : null;
    const more = table.key & KEY.MORE ? s.more : null, place = this.trace.places[table.key & KEY.PC ? s.place : 0];
    const number = table.key & KEY.EACH ? ++this.each : table.key & KEY.CPU ? s.cpu : place.pc ? s.place : 0;
    const thread = who ? who.serial || `=${who.name}` : 0; // what stands for a thread has no serial
    const row = this.row_get(table, `${thread}|${number}|${text === null ? 0 : s.text_line}|${more === null ? 0 : s.more_line}`);
    if (row.fresh || (table.place && place.names[0] && place.pc === 0n)) { // a program's place is told in any row of no address
      row.fresh = false;
      row.number = table.key & KEY.CPU ? BigInt(s.cpu) : place.pc;
      row.texts = [text, ...(table.place ? place.names : [more, null])];
    }
    row.who = who;
    return row;
  }

  row_get(table, key) {
    const row = table.rows.get(key) || row_make(this.head, key);
    if (row.fresh) table.rows.set(key, row);
    return row;
  }

  /** Keeps the worst rows. */
  rows_prune(table) {
    const sorted = [...table.rows.values()].sort((l, r) => rows_compare(table, l, r));
    table.rows = new Map(sorted.slice(0, WORST_ROWS).map((row) => [row.key, row]));
  }

  /** The tables of the report events, which no samples fill. */
  events_add() {
    const { events, sites, gaps, head } = this.trace;
    const [classes, of_sites, cpus] = ['classes', 'sites', 'cpus'].map((name) => this.tables.find((t) => t.report === 'events' && t.name === name));
    const counts = new Float64Array(sites.length), of_cpus = new Map();
    for (let i = 0; i < events.n; i++) {
      if (events.raw[i] < this.since || events.raw[i] > this.until) continue;
      if (counts[events.site[i]]++ === 0) this.site_row(of_sites, sites[events.site[i]]);
      of_cpus.set(events.cpu[i], (of_cpus.get(events.cpu[i]) || 0) + 1);
      this.events++;
    }
    const cpu_row = (cpu) => Object.assign(this.row_get(cpus, `${cpu}`), { number: BigInt(cpu) });
    for (const [cpu, n] of of_cpus) cpu_row(cpu).cells[CELL.COUNT] += n;
    for (const gap of gaps.filter((g) => g.to >= this.since && g.from <= this.until)) {
      cpu_row(gap.cpu).cells[head.more + gap.reason] += gap.count;
      this.lost += gap.count;
      this.gaps++;
    }
    sites.forEach((site, n) => {
      if (counts[n] === 0) return;
      this.site_row(of_sites, site).cells[CELL.COUNT] += counts[n];
      for (const name of site.classes || []) {
        const row = this.row_get(classes, name);
        row.texts[0] = name;
        row.cells[CELL.COUNT] += counts[n];
      }
    });
  }

  site_row(table, site) {
    const row = this.row_get(table, site.params ? `${site.place}|${site.bits}|${site.fmt}` : '');
    if (row.texts[0] === null) {
      row.texts = site.params ? [site.place, site.func, site.fmt] : ['(its description was lost)', null, null];
      row.number = site.params ? BigInt(site.bits) : 0n;
    }
    return row;
  }

  table_finish(table) {
    const rows = [...table.rows.values()];
    table.total = table.worst || table.overlaps ? null : rows_sum(this.head, rows);
    table.sorted = rows.sort((l, r) => rows_compare(table, l, r)).slice(0, table.worst ? WORST_ROWS : undefined);
  }

  /** What a column shows of a row: a number, a text, or the thread; total is for shares. */
  value(column, row) {
    switch (column.format) {
      case 'text': return row.texts[column.cell];
      case 'thread': return row.who;
      case 'number': return row.number;
      default: return row_cell(this.head, row, column.cell);
    }
  }

  /** The same as text. */
  cell_text(column, row, total) {
    const v = this.value(column, row);
    switch (column.format) {
      case 'text': return v === null ? '' : v;
      case 'thread': return v === null ? '' : v.serial ? `${v.tid} ${v.name}` : v.name;
      case 'ms': return fixed_text(v, 6);
      case 'us': return fixed_text(v, 3);
      case 'seconds': return seconds_text(this.trace, v);
      case 'share': return share_text(v, total.cells[column.cell]);
      default: return `${v}`;
    }
  }
}
