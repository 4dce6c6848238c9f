'use strict';
/*
 * page.js - the page: keys, the pointer, search, the address, and the reports of what is selected. `page` has its state,
 * for tests too.
 */

const ROWS_SHOWN = 30, SEARCH_MS = 12, ZOOM = 1.25, PAN = 0.12;

/** @param {string} id @returns {any} */
function element(id) {
  return document.getElementById(id);
}

/** An element with a text. */
function make(tag, text = '', name = '') {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

class Page {
  constructor(trace) {
    this.trace = trace;
    this.timeline = new Timeline(element('timeline'), trace, lanes_find(trace));
    this.report = null;
    this.tab = '';
    this.hover = null;
    this.pointer = { x: LEFT + 200, y: 0 };
    this.frames = 0;
    this.frame_asked = false;
    this.opened_ms = 0; // from the request to the first picture
    this.searches = 0; // the last one runs
    const { head, events } = trace;
    document.title = `Kestrel ${head.arch}: ${events.n} events`;
    element('title').textContent = `${events.n.toLocaleString('en')} events, ${head.cpus} CPU${head.cpus === 1 ? '' : 's'}, ` +
      `${duration_text(head.to - head.from)} (${head.arch})`;
    this.listen();
    this.address_read();
    this.draw_now();
    this.opened_ms = performance.now();
  }

  /** Draws before the next frame is shown. */
  draw() {
    if (this.frame_asked) return;
    this.frame_asked = true;
    requestAnimationFrame(() => this.draw_now());
  }

  draw_now() {
    this.frame_asked = false;
    this.timeline.draw();
    this.frames++;
    clearTimeout(this.address_timer);
    this.address_timer = setTimeout(() => this.address_write(), 200);
  }

  listen() {
    const canvas = element('timeline'), search = element('search');
    window.addEventListener('resize', () => this.resized());
    new ResizeObserver(() => this.resized()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.timeline.inks = inks_read();
      this.draw();
    });
    window.addEventListener('hashchange', () => this.address_read());
    document.addEventListener('keydown', (e) => this.key(e));
    canvas.addEventListener('wheel', (e) => this.wheel(e), { passive: false });
    canvas.addEventListener('pointerdown', (e) => this.press(e));
    canvas.addEventListener('pointermove', (e) => this.move(e));
    canvas.addEventListener('pointerup', (e) => this.release(e));
    canvas.addEventListener('pointercancel', (e) => this.release(e));
    canvas.addEventListener('pointerleave', () => this.tip_show(null));
    search.addEventListener('keydown', (e) => {
      if (e.key === 'Enter') this.search(search.value, e.shiftKey ? -1 : 1);
      if (e.key === 'Escape') canvas.focus();
      e.stopPropagation();
    });
    element('help-button').addEventListener('click', () => this.help());
    element('panel-close').addEventListener('click', () => this.select(null));
  }

  resized() {
    this.timeline.resize();
    this.draw_now(); // the canvas is empty
  }

  help() {
    element('help').hidden = !element('help').hidden;
    element('help-button').setAttribute('aria-expanded', `${!element('help').hidden}`);
  }

  // ---- keys and the pointer ----

  key(e) {
    const t = this.timeline, x = this.pointer.x, focus = document.activeElement;
    const scrolls = /^(Arrow|Page)/.test(e.key) && focus !== document.body && focus !== t.canvas; // what has the focus
    if (e.ctrlKey || e.altKey || e.metaKey || scrolls) return;
    const acts = {
      w: () => t.zoom(1 / ZOOM, x), s: () => t.zoom(ZOOM, x), a: () => t.pan(-PAN), d: () => t.pan(PAN),
      ArrowLeft: () => t.pan(-PAN), ArrowRight: () => t.pan(PAN),
      ArrowUp: () => t.scroll_to(t.scroll - 40), ArrowDown: () => t.scroll_to(t.scroll + 40),
      PageUp: () => t.scroll_to(t.scroll - t.h / 2), PageDown: () => t.scroll_to(t.scroll + t.h / 2),
      f: () => (t.selection ? t.view(t.selection[0], t.selection[1]) : t.view(t.first, t.last)),
      r: () => this.select([t.from, t.to].map(Math.round)), Escape: () => (element('help').hidden ? this.select(null) : this.help()),
      '/': () => element('search').focus(), '?': () => this.help(),
    };
    const act = acts[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (act === undefined) return;
    e.preventDefault();
    act();
    this.draw();
  }

  wheel(e) {
    e.preventDefault();
    const t = this.timeline, by = e.deltaMode === 1 ? e.deltaY * 30 : e.deltaY;
    if (e.ctrlKey) t.zoom(Math.exp(by * 0.004), e.offsetX);
    else if (e.shiftKey || e.deltaX) t.pan((e.deltaX || by) / (t.w - LEFT));
    else t.scroll_to(t.scroll + by);
    this.draw();
  }

  press(e) {
    if (e.button !== 0) return;
    element('timeline').setPointerCapture(e.pointerId);
    this.pressed = { x: e.offsetX, y: e.offsetY, at: this.timeline.ns(e.offsetX), pans: e.shiftKey || e.offsetY < TOP, moved: false };
  }

  move(e) {
    const t = this.timeline, pressed = this.pressed;
    const by = { x: e.offsetX - this.pointer.x, y: e.offsetY - this.pointer.y };
    this.pointer = { x: e.offsetX, y: e.offsetY };
    if (!pressed) {
      this.tip_show(t.find(e.offsetX, e.offsetY), e.clientX, e.clientY);
      return;
    }
    pressed.moved = pressed.moved || Math.abs(e.offsetX - pressed.x) > 3;
    if (pressed.pans) {
      t.pan(-by.x / (t.w - LEFT));
      t.scroll_to(t.scroll - by.y);
    } else if (pressed.moved) {
      t.selection = [pressed.at, t.ns(e.offsetX)].map(Math.round).sort((a, b) => a - b);
    }
    this.draw();
  }

  release(e) {
    const pressed = this.pressed;
    this.pressed = null;
    if (!pressed || pressed.pans) return;
    if (pressed.moved) {
      this.select(this.timeline.selection);
      return;
    }
    const found = this.timeline.find(e.offsetX, e.offsetY);
    this.timeline.marked = found && found.event !== undefined ? found.event : null;
    this.timeline.thread = found && found.row.kind === 'thread' ? found.row : null;
    this.draw();
  }

  // ---- what the pointer shows ----

  /** The lines of what was found: [text, dim]. @returns {[string, boolean][]} */
  lines_of(found) {
    const { trace } = this, { events, samples } = trace, row = found.row;
    const who = row.kind === 'thread' ? `${[...row.names].join(', then ')}, thread ${row.tid}` : row.kind === 'cpu' ? `CPU ${row.n}` :
      `${row.name}${row.left ? `, ${row.left} more at once are not drawn` : ''}`;
    if (found.gap) {
      const gap = found.gap;
      return [[`${gap.count.toLocaleString('en')} events lost (${trace.head.reasons[gap.reason]})`, false],
        [`CPU ${gap.cpu}, ${seconds_text(trace, gap.from)} s, ${duration_text(gap.to - gap.from)}`, true]];
    }
    if (found.event !== undefined) {
      const i = found.event, site = trace.sites[events.site[i]], t = trace.who[events.who[i]];
      const seq = BigInt.asUintN(64, events.first_seq[events.cpu[i]] + BigInt(events.seq[i]));
      return [[event_text(trace, i), false], ...event_params(trace, i).map(([name, text]) => /** @type {[string, boolean]} */ ([`${name} = ${text}`, false])),
        [`${site.params ? `${site.file}:${site.line}, ${site.func}()` : ''}`, true],
        [`${seconds_text(trace, events.raw[i])} s, CPU ${events.cpu[i]}, event ${seq} of it, ${t.name} ${t.tid}`, true]];
    }
    if (found.sample === undefined) return [[who, false]];
    const id = found.sample;
    return [[sample_name(trace, id), false], [who, true],
      [`${seconds_text(trace, samples.from[id])} s, ${duration_text(samples.to[id] - samples.from[id])}, CPU ${samples.cpu[id]}`, true]];
  }

  tip_show(found, x = 0, y = 0) {
    const tip = element('tip');
    this.hover = found;
    tip.hidden = found === null;
    if (found === null) return;
    tip.replaceChildren(...this.lines_of(found).filter(([text]) => text).map(([text, dim]) => make('div', text, dim ? 'dim' : '')));
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(x + 14, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y + 18 + box.height < innerHeight ? y + 18 : Math.max(0, y - box.height - 8)}px`;
  }

  // ---- a stretch, and its reports ----

  /** @param {number[] | null} selection nanoseconds: from and to, both within */
  select(selection) {
    this.timeline.selection = selection;
    this.report = selection && new Report(this.trace, selection[0], selection[1]);
    element('panel').hidden = !selection;
    if (selection) this.panel_show();
    this.resized();
  }

  panel_show() {
    const report = this.report, names = [...new Set(report.tables.filter((t) => t.sorted.length).map((t) => t.report))];
    if (!names.includes(this.tab)) this.tab = names[0] || '';
    element('panel-title').textContent = `${duration_text(report.until - report.since)} from ${seconds_text(this.trace, report.since)} s: ` +
      `${report.events.toLocaleString('en')} events${report.lost ? `, ${report.lost.toLocaleString('en')} lost` : ''}`;
    element('tabs').replaceChildren(...names.map((name) => {
      const button = make('button', name);
      button.setAttribute('aria-pressed', `${name === this.tab}`);
      button.addEventListener('click', () => {
        this.tab = name;
        this.panel_show();
      });
      return button;
    }));
    element('tables').replaceChildren(...report.tables.filter((t) => t.report === this.tab && t.sorted.length).flatMap((t) => this.table_make(t)));
  }

  /** A title and a table. */
  table_make(table) {
    const report = this.report, made = make('table'), shown = table.sorted.slice(0, ROWS_SHOWN);
    const line = (tag, name, texts) => {
      const row = make('tr', '', name);
      texts.forEach((text, i) => row.append(make(tag, text, ['text', 'thread'].includes(table.columns[i].format) ? 'text' : '')));
      made.append(row);
    };
    line('th', '', table.columns.map((column) => column.title));
    for (const row of shown) line('td', '', table.columns.map((column) => report.cell_text(column, row, table.total)));
    const left = table.sorted.length - shown.length;
    if (table.total) {
      line('td', 'total', table.columns.map((column, i) => (i === 0 ? `total${left ? `, with ${left} more rows` : ''}`
        : ['text', 'thread', 'number'].includes(column.format) ? '' : report.cell_text(column, table.total, table.total))));
    }
    const known = share_text(report.known[table.threads], report.all[table.threads]);
    return [make('h3', `${table.title} (${known} % known)${left && !table.total ? `; ${left} more rows` : ''}`), made];
  }

  // ---- search ----

  /** Finds the next event, or, with step -1, the one before, whose text, function or thread has the words; from the marked one on. */
  async search(words, step) {
    const { trace, timeline: t } = this, { events } = trace, wanted = words.toLowerCase(), number = ++this.searches;
    const output = element('found');
    if (!wanted || events.n === 0) return;
    let i = t.marked !== null ? t.marked : step > 0 ? first_at(events.ns, t.from) - 1 : first_at(events.ns, t.to);
    for (let left = events.n, until = performance.now() + SEARCH_MS; left > 0; left--) {
      i = (i + step + events.n) % events.n;
      if (this.matches(i, wanted)) {
        output.textContent = `${seconds_text(trace, events.raw[i])} s  ${trace.who[events.who[i]].name}  ${event_text(trace, i)}`;
        this.mark(i);
        return;
      }
      if (left % 64 || performance.now() < until) continue;
      output.textContent = `searching: ${Math.floor(100 - left * 100 / events.n)} %`;
      await new Promise((go) => { setTimeout(go); });
      if (number !== this.searches) return;
      until = performance.now() + SEARCH_MS;
    }
    output.textContent = 'not found';
  }

  matches(i, wanted) {
    const { trace } = this, { events } = trace, site = trace.sites[events.site[i]];
    return event_text(trace, i).toLowerCase().includes(wanted) || (site.func || '').toLowerCase().includes(wanted) ||
      trace.who[events.who[i]].name.toLowerCase().includes(wanted);
  }

  /** Marks an event, and shows it. */
  mark(i) {
    const t = this.timeline, ns = this.trace.events.ns[i], thread = t.lanes.of_line[this.trace.events.who[i]];
    t.marked = i;
    if (ns < t.from || ns > t.to) t.view(ns - (t.to - t.from) / 2, ns + (t.to - t.from) / 2);
    if (thread) {
      t.thread = thread;
      t.reveal(thread.idle ? t.lanes.cpus[this.trace.events.cpu[i]] : thread);
    }
    this.draw();
  }

  // ---- the address ----

  /** `#t=FROM-TO&thread=TID&selection=FROM-TO&event=N`: times in seconds since boot; an event's number counts all of the page. */
  address_write() {
    const t = this.timeline, stretch = (times) => times.map((ns) => seconds_text(this.trace, ns)).join('-');
    const words = [`t=${stretch([t.from, t.to])}`];
    if (t.thread) words.push(`thread=${t.thread.tid}`);
    if (t.selection) words.push(`selection=${stretch(t.selection)}`);
    if (t.marked !== null) words.push(`event=${t.marked}`);
    const hash = `#${words.join('&')}`;
    if (hash !== location.hash) history.replaceState(null, '', hash);
  }

  address_read() {
    const t = this.timeline, words = new URLSearchParams(location.hash.slice(1));
    const times = (name) => {
      const found = /^(-?\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(words.get(name) || '');
      return found && [found[1], found[2]].map((text) => seconds_read(this.trace, text));
    };
    const view = times('t'), selection = times('selection'), event = Number(words.get('event') || NaN), name = words.get('thread');
    if (view && view[1] > view[0]) t.view(view[0], view[1]);
    t.marked = Number.isInteger(event) && event >= 0 && event < this.trace.events.n ? event : null;
    const named = [...t.lanes.threads.values()].filter((one) => `${one.tid}` === name || one.names.has(name));
    t.thread = named.find((one) => one.states.from[first_at(one.states.to, t.from)] < t.to) || named[0] || null; // that is seen
    if (t.thread) t.reveal(t.thread);
    if (`${selection}` !== `${t.selection}`) this.select(selection);
    this.draw();
  }
}

/** @type {Page | undefined} */
let page;

async function start() {
  /** @type {Record<string, string>} */
  const columns = {};
  for (const script of document.querySelectorAll('script[type="text/plain"]')) {
    columns[script.id] = script.textContent || '';
    script.remove();
  }
  element('title').textContent = 'reading…';
  try {
    page = new Page(await trace_read(columns));
  } catch (e) {
    element('title').textContent = `This browser cannot show the page: ${e}`;
    throw e;
  }
}
