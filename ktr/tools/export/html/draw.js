'use strict';
/* draw.js - draws the rows into a canvas: a part of the time from left to right, and a part of the rows. */

const LEFT = 190, TOP = 30, BIN = 2, CHAR = 6.3, ARROWS_MAX = 400, TICKS_MAX = 100;
const SECTION = 24, CPU_ROW = 30, STRIP = 5, BAR = 16, STATE = 13, TICKS = 6, CALL = 13, GAP = 6;
const HUES = 8;

/** The colours of the page's style, and the patterns. */
function inks_read() {
  const style = getComputedStyle(document.documentElement);
  const ink = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ['ground', 'ink', 'dim', 'line', 'stripe', 'idle', 'sleep', 'runnable', 'blocked', 'spin', 'irq', 'lost', 'select', 'label', 'arrow', 'mark'];
  /** @type {Record<string, any>} */
  const inks = Object.fromEntries(names.map((name) => [name, ink(name)]));
  inks.threads = Array.from({ length: HUES }, (_, n) => ink(`t${n}`));
  inks.hatch_lost = hatch(inks.lost, 7, 1);
  inks.hatch_blocked = hatch(inks.blocked, 5, -1);
  inks.hatch_spin = hatch(inks.ground, 6, 1);
  inks.hatch_mark = hatch(inks.spin, 7, 1);
  return inks;
}

/** A pattern of slanting lines. */
function hatch(colour, size, slope) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const c = tile.getContext('2d');
  c.strokeStyle = colour;
  c.lineWidth = 1.5;
  c.beginPath();
  for (const shift of [-size, 0, size]) {
    c.moveTo(shift, slope > 0 ? size : 0);
    c.lineTo(shift + size, slope > 0 ? 0 : size);
  }
  c.stroke();
  return c.createPattern(tile, 'repeat');
}

function hash_of(text) {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619) >>> 0;
  return h;
}

/** A step of 1, 2 or 5 times a power of ten, of which at least `least` nanoseconds. */
function tick_step(least) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((n) => n * unit).find((step) => step >= least) || 10 * unit;
}

class Timeline {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas, trace, lanes) {
    this.canvas = canvas;
    this.trace = trace;
    this.lanes = lanes;
    this.c = canvas.getContext('2d', { alpha: false });
    this.inks = inks_read();
    this.first = trace.head.from;
    this.last = Math.max(trace.head.to, trace.head.from + 1);
    this.from = this.first;
    this.to = this.last;
    this.scroll = 0;
    this.selection = null; // [from, to]
    this.marked = null; // an event
    this.thread = null; // that a link names
    this.shown = { arrows: 0, lost: 0, parts: 0 };
    this.rows_place();
    this.resize();
  }

  /** The rows from top to bottom, with y and height. */
  rows_place() {
    this.rows = [];
    this.row_of = new Map();
    let y = 0;
    const add = (row, height) => {
      this.row_of.set(row, this.rows.push({ row, y, height }) - 1);
      y += height;
    };
    const section = (title, rows, height_of) => {
      if (rows.length > 0) add({ kind: 'section', title }, SECTION);
      for (const row of rows) add(row, height_of(row));
    };
    section('CPUs', this.lanes.cpus, () => CPU_ROW);
    section('Disks', this.lanes.disks, (disk) => disk.lanes.length * CALL + GAP);
    section('Threads', [...this.lanes.threads.values()].filter((t) => !t.idle), (t) => STATE + TICKS + t.calls.length * CALL + GAP);
    this.height = y;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
    this.w = Math.max(LEFT + 100, box.width);
    this.h = Math.max(TOP + 50, box.height);
    this.canvas.width = Math.round(this.w * ratio);
    this.canvas.height = Math.round(this.h * ratio);
    this.ratio = ratio;
    this.scroll_to(this.scroll);
  }

  x(ns) {
    return LEFT + (ns - this.from) * (this.w - LEFT) / (this.to - this.from);
  }

  ns(x) {
    return this.from + (x - LEFT) * (this.to - this.from) / (this.w - LEFT);
  }

  /** Shows a part of the time: at least 20 ns, and not all outside the trace. */
  view(from, to) {
    const whole = this.last - this.first, length = Math.min(Math.max(to - from, 20), whole * 1.1 + 20);
    const start = Math.min(Math.max(from, this.first - length / 2), this.last - length / 2);
    this.from = start;
    this.to = start + length;
  }

  zoom(factor, x) {
    const at = this.ns(x);
    this.view(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(part) {
    const ns = (this.to - this.from) * part;
    this.view(this.from + ns, this.to + ns);
  }

  scroll_to(y) {
    this.scroll = Math.min(Math.max(0, y), Math.max(0, this.height - (this.h - TOP)));
  }

  /** Scrolls so that a row is seen. */
  reveal(row) {
    const place = this.rows[this.row_of.get(row)];
    if (place === undefined) return;
    const bottom = this.h - TOP - place.height;
    if (place.y < this.scroll || place.y > this.scroll + bottom) this.scroll_to(place.y - bottom / 3);
  }

  colour(t) {
    return this.inks.threads[hash_of(`${t.name} ${t.tid}`) % HUES];
  }

  /** All of it. */
  draw() {
    const { c, inks } = this;
    this.shown = { arrows: 0, lost: 0, parts: 0 };
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.font = '11px system-ui, sans-serif';
    c.textBaseline = 'middle';
    c.fillStyle = inks.ground;
    c.fillRect(0, 0, this.w, this.h);
    this.grid_draw();
    c.save();
    c.beginPath();
    c.rect(0, TOP, this.w, this.h - TOP);
    c.clip();
    for (const place of this.rows) {
      const y = TOP + place.y - this.scroll;
      if (y + place.height > TOP && y < this.h) this.row_draw(place, y);
    }
    this.arrows_draw();
    this.selection_draw();
    c.restore();
  }

  grid_draw() {
    const { c, inks } = this, step = tick_step((this.to - this.from) / Math.max(2, (this.w - LEFT) / 110));
    c.textAlign = 'left';
    const first = Math.ceil(this.from / step), digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(step))));
    for (let k = 0; k < TICKS_MAX && (first + k) * step < this.to; k++) {
      const x = Math.round(this.x((first + k) * step)), seconds = seconds_text(this.trace, (first + k) * step);
      c.fillStyle = inks.line;
      c.fillRect(x, TOP - 6, 1, this.h);
      c.fillStyle = inks.dim;
      c.fillText(`${seconds.slice(0, seconds.length - (digits ? 9 - digits : 10))} s`, x + 4, TOP / 2);
    }
    c.fillStyle = inks.dim;
    c.fillText(`${duration_text(this.to - this.from)} shown`, 10, TOP / 2);
  }

  row_draw(place, y) {
    const { c, inks } = this, row = place.row;
    c.textAlign = 'left';
    c.fillStyle = inks.stripe;
    if (row.kind === 'section' || row === this.thread) c.fillRect(0, y, this.w, place.height - 2);
    if (row.kind === 'section') {
      c.fillStyle = inks.dim;
      c.fillText(row.title.toUpperCase(), 10, y + place.height / 2 - 1);
      return;
    }
    c.save();
    c.beginPath();
    c.rect(LEFT, y, this.w - LEFT, place.height);
    c.clip();
    if (row.kind === 'cpu') this.cpu_draw(row, y);
    else if (row.kind === 'disk') row.lanes.forEach((lane, n) => this.calls_draw(lane, y + n * CALL));
    else this.thread_draw(row, y);
    c.restore();
    this.label_draw(row, y);
  }

  label_draw(row, y) {
    const { c, inks } = this, middle = y + (row.kind === 'cpu' ? STRIP + BAR / 2 + 1 : STATE / 2);
    const name = row.kind === 'cpu' ? `CPU ${row.n}` : row.name || 'thread', number = row.kind === 'thread' ? `${row.tid}` : '';
    c.fillStyle = inks.ink;
    c.fillText(cut_text(name, LEFT - 30 - number.length * CHAR), 10, middle);
    c.textAlign = 'right';
    c.fillStyle = inks.dim;
    c.fillText(number, LEFT - 10, middle);
  }

  /**
   * Calls part(i, x, width) for each part of a lane that is seen, and bin(x, share, i) for each two pixels with shorter
   * ones, of which part i is the first.
   */
  lane_draw(lane, part, bin) {
    const per_px = (this.to - this.from) / (this.w - LEFT);
    let i = first_at(lane.to, this.from);
    while (i < lane.n && lane.from[i] < this.to) {
      this.shown.parts++;
      if (lane.to[i] - lane.from[i] >= BIN * per_px) {
        const x = Math.max(this.x(lane.from[i]), LEFT - 10);
        part(i, x, Math.min(this.x(lane.to[i]), this.w + 10) - x);
        i++;
        continue;
      }
      const x = Math.floor(this.x(lane.from[i]) / BIN) * BIN, end = this.ns(x + BIN);
      let step = 1;
      while (i + step < lane.n && lane.to[i + step] <= end) step *= 2;
      const next = Math.max(i + 1, first_at(lane.to, end, i, Math.min(lane.n, i + step + 1)));
      bin(x, Math.min(1, (lane.busy[next] - lane.busy[i]) / (BIN * per_px)), i);
      i = next;
    }
  }

  bar_text(text, x, width, y, colour) {
    const left = Math.max(x, LEFT);
    if (x + width - left < 24) return;
    this.c.fillStyle = colour;
    this.c.textAlign = 'left';
    this.c.fillText(cut_text(text, x + width - left - 6), left + 3, y);
  }

  cpu_draw(cpu, y) {
    const { c, inks, trace } = this, top = y + STRIP + 1;
    this.lane_draw(cpu.runs, (i, x, width) => {
      const t = this.lanes.of_line[trace.samples.who[cpu.runs.id[i]]];
      if (!t) return;
      c.fillStyle = t.idle ? inks.idle : this.colour(t);
      c.fillRect(x, t.idle ? top + BAR / 2 - 1 : top, Math.max(1, width - 0.5), t.idle ? 2 : BAR);
      if (!t.idle) this.bar_text(sample_name(trace, cpu.runs.id[i]), x, width, top + BAR / 2, inks.label);
    }, (x, share) => {
      c.fillStyle = inks.mark;
      const height = Math.max(1, Math.round(BAR * share));
      c.fillRect(x, top + BAR - height, BIN, height);
    });
    c.fillStyle = inks.irq;
    this.lane_draw(cpu.irqs, (_, x, width) => c.fillRect(x, y, Math.max(1, width), STRIP), (x) => c.fillRect(x, y, 1, STRIP));
    let drawn = 0;
    for (const gap of cpu.gaps) {
      const x = Math.max(this.x(gap.from), drawn), width = Math.max(this.x(gap.from) + 3, this.x(gap.to)) - x;
      if (gap.to < this.from || gap.from > this.to) continue;
      this.shown.lost++;
      if (width < 1) continue; // those before it cover it
      drawn = x + width;
      for (const ink of [inks.ground, inks.hatch_lost]) {
        c.fillStyle = ink;
        c.fillRect(x, top, width, BAR);
      }
      c.strokeStyle = inks.lost;
      c.strokeRect(x + 0.5, top + 0.5, width - 1, BAR - 1);
    }
  }

  /** States differ by shape as well as by colour. */
  thread_draw(t, y) {
    const { c, inks, trace } = this, colour = this.colour(t);
    const state_of = (i) => trace.strings[trace.samples.text[t.states.id[i]]];
    this.lane_draw(t.states, (i, x, width) => {
      const state = state_of(i), w = Math.max(1, width - 0.5);
      if (state === 'running' || state === 'spinning') {
        for (const ink of state === 'running' ? [colour] : [inks.spin, inks.hatch_spin]) {
          c.fillStyle = ink;
          c.fillRect(x, y, w, STATE);
        }
        this.bar_text(state === 'running' ? state : sample_name(trace, t.states.id[i]), x, width, y + STATE / 2, inks.label);
      } else if (state === 'sleeping') {
        c.fillStyle = inks.sleep;
        c.fillRect(x, y + STATE / 2 - 1, width, 2);
      } else if (state === 'runnable' || state === 'blocked') {
        c.fillStyle = state === 'blocked' ? inks.hatch_blocked : inks.runnable;
        c.fillRect(x, y, w, STATE);
        c.strokeStyle = state === 'blocked' ? inks.blocked : colour;
        c.strokeRect(x + 0.5, y + 0.5, Math.max(1, w - 1), STATE - 1);
      }
    }, (x, share, i) => {
      c.fillStyle = colour;
      const height = Math.round(STATE * share);
      if (height > 0) c.fillRect(x, y + STATE - height, BIN, height);
      else if (state_of(i) === 'sleeping') c.fillRect(x, y + STATE / 2, BIN, 1);
    });
    this.ticks_draw(t, y + STATE + 1);
    t.calls.forEach((lane, n) => this.calls_draw(lane, y + STATE + TICKS + n * CALL));
  }

  /** A tick for each event; those that touch are one bar. */
  ticks_draw(t, y) {
    const c = this.c, n = t.times.length;
    c.fillStyle = this.inks.dim;
    for (let i = first_at(t.times, this.from); i < n && t.times[i] <= this.to;) {
      const x = Math.floor(this.x(t.times[i]));
      let end = x + 1;
      for (; i < n && this.x(t.times[i]) < end + 1; i = first_at(t.times, this.ns(end), i + 1)) end = Math.max(end, Math.floor(this.x(t.times[i])) + 1);
      c.fillRect(x, y, end - x, TICKS - 3);
    }
  }

  calls_draw(lane, y) {
    const { c, inks, trace } = this;
    this.lane_draw(lane, (i, x, width) => {
      const name = sample_name(trace, lane.id[i]);
      c.fillStyle = inks.threads[hash_of(name) % HUES];
      c.fillRect(x, y, Math.max(1, width - 0.5), CALL - 1.5);
      this.bar_text(name, x, width, y + CALL / 2 - 0.5, inks.label);
    }, (x, share) => {
      c.fillStyle = inks.mark;
      const height = Math.max(1, Math.round((CALL - 1.5) * share));
      c.fillRect(x, y + CALL - 1.5 - height, BIN, height);
    });
  }

  /** y of the middle of a thread's row; of an idle thread's the CPU's. */
  middle_of(t, cpu) {
    const row = t && !t.idle ? t : this.lanes.cpus[cpu], place = this.rows[this.row_of.get(row)];
    return place === undefined ? NaN : TOP + place.y - this.scroll + (row === t ? STATE / 2 : STRIP + BAR / 2);
  }

  /** Wakeups, where they are few: from the waker's event to the run. */
  arrows_draw() {
    const { c, inks, trace } = this, wakeups = this.lanes.wakeups, seen = [];
    for (let i = first_at(this.lanes.wakeup_ends, this.from); i < wakeups.length && wakeups[i].to <= this.to; i++) {
      if (seen.push(wakeups[i]) > ARROWS_MAX) return;
    }
    c.strokeStyle = c.fillStyle = inks.arrow;
    for (const wake of seen) {
      const waker = this.lanes.of_line[trace.events.who[wake.event]];
      const y0 = this.middle_of(waker, trace.events.cpu[wake.event]), y1 = this.middle_of(wake.thread, 0);
      const x0 = Math.max(this.x(wake.from), LEFT), x1 = this.x(wake.to);
      if (Math.max(y0, y1) < TOP || Math.min(y0, y1) > this.h || Number.isNaN(y0 + y1) || x1 < LEFT) continue;
      const angle = Math.atan2(y1 - y0, x1 - x0);
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
      for (const turn of [0.4, -0.4]) c.lineTo(x1 - 8 * Math.cos(angle + turn), y1 - 8 * Math.sin(angle + turn));
      c.lineTo(x1, y1);
      c.stroke();
      c.fill();
      this.shown.arrows++;
    }
  }

  selection_draw() {
    const { c, inks } = this;
    if (this.selection) {
      const [a, b] = this.selection.map((ns) => Math.min(Math.max(this.x(ns), LEFT - 2), this.w + 2));
      c.fillStyle = inks.select;
      c.globalAlpha = 0.18;
      c.fillRect(a, TOP, Math.max(1, b - a), this.h);
      c.globalAlpha = 1;
      c.fillRect(a, TOP, 1, this.h);
      c.fillRect(b, TOP, 1, this.h);
    }
    if (this.marked !== null) {
      const x = this.x(this.trace.events.ns[this.marked]);
      c.fillStyle = inks.hatch_mark;
      if (x >= LEFT) c.fillRect(x, TOP, 2, this.h);
    }
  }

  /** What is at a place: {row, event} or {row, sample} or {row, gap} or {row}; null: nothing. */
  find(x, y) {
    const place = this.rows.find((p) => y >= TOP && y + this.scroll - TOP >= p.y && y + this.scroll - TOP < p.y + p.height);
    if (place === undefined || place.row.kind === 'section') return null;
    const row = place.row, inside = y + this.scroll - TOP - place.y, ns = this.ns(x);
    if (x < LEFT) return { row };
    const slack = 3 * (this.to - this.from) / (this.w - LEFT);
    if (row.kind === 'cpu') {
      const gap = row.gaps.find((g) => ns >= g.from - slack && ns <= g.to + slack);
      return gap && inside > STRIP ? { row, gap } : this.part_find(row, inside <= STRIP ? row.irqs : row.runs, ns);
    }
    if (row.kind === 'disk') return this.part_find(row, row.lanes[Math.floor(inside / CALL)], ns);
    if (inside < STATE) return this.part_find(row, row.states, ns);
    if (inside >= STATE + TICKS) return this.part_find(row, row.calls[Math.floor((inside - STATE - TICKS) / CALL)], ns);
    let i = first_at(row.times, ns);
    if (i > 0 && (i === row.times.length || ns - row.times[i - 1] < row.times[i] - ns)) i--;
    return i < row.times.length && Math.abs(row.times[i] - ns) <= 2 * slack ? { row, event: row.events[i] } : { row };
  }

  part_find(row, lane, ns) {
    const i = lane ? part_at(lane, ns) : -1;
    return i < 0 ? { row } : { row, sample: lane.id[i] };
  }
}

/** As much of a text as fits. */
function cut_text(text, width) {
  const room = Math.floor(width / CHAR);
  return text.length <= room ? text : room > 1 ? `${text.slice(0, room - 1)}…` : '';
}
