// export_html.js - runs the script of a page of ktrdump --format html over the page's columns, without a browser, and
// prints what it says as lines of JSON: the text of each event, then, for each stretch, the tables of its reports.
//
// usage: node export_html.js PAGE [SINCE-UNTIL...]
'use strict';
const fs = require('fs');

const [page, ...stretches] = process.argv.slice(2);
const text = fs.readFileSync(page, 'utf8');
const script = /<script>\n([^]*?)<\/script>/.exec(text)[1];
const columns = Object.fromEntries([...text.matchAll(/<script type="text\/plain" id="([^"]*)">([^<]*)<\/script>/g)].map((m) => [m[1], m[2]]));
const of_page = new Function(`${script}; return { trace_read, event_text, share_text, Report, Page, lanes_find };`)();

/** The rows of a table as jsonl has them. */
function rows_of(report, table) {
  const is_label = (column) => ['text', 'thread', 'number'].includes(column.format);
  const object = (row, label) => {
    const made = { report: table.report, table: table.name, ...(label ? { row: label } : {}) };
    for (const column of table.columns) {
      if (column.json === null || (label && is_label(column))) continue;
      const seconds = column.format === 'seconds', is = report.value(column, row), v = seconds ? `${BigInt(is) + report.trace.base}` : is;
      const name = is_label(column) || column.format === 'count' ? column.json : `${column.json}_ns`;
      made[name] = column.format === 'thread' ? (v ? v.name : '') : typeof v === 'bigint' ? Number(v) : v;
      if (column.format === 'thread') made.tid = v ? v.tid : 0;
    }
    if (label) Object.assign(made, { known_ns: report.known[table.threads], all_ns: report.all[table.threads] });
    if (table.histogram) made.histogram = Array.from(row.cells.slice(5, 12)); // CELL_BELOW
    return made;
  };
  return [...table.sorted.map((row) => object(row, '')), ...(table.total && table.sorted.length ? [object(table.total, 'total')] : [])];
}

/** The tables as the report prints them: titles, and 20 rows, whose cells have 63 characters. */
function lines_of(report) {
  return report.tables.filter((table) => table.sorted.length).flatMap((table) => [
    `${table.report}: ${table.title} (${of_page.share_text(report.known[table.threads], report.all[table.threads])} % known)`,
    ...table.sorted.slice(0, 20).map((row) => table.columns.map((column) => report.cell_text(column, row, table.total).slice(0, 63)).join(' '))]);
}

async function main() {
  const trace = await of_page.trace_read(columns), lines = [];
  for (let i = 0; i < trace.events.n; i++) lines.push(of_page.event_text(trace, i));
  const found = { texts: lines, reports: [] };
  for (const stretch of stretches) {
    const [since, until] = stretch.split('-').map((ns) => Number(BigInt(ns) - trace.base)), report = new of_page.Report(trace, since, until);
    found.reports.push({ events: report.events, lost: report.lost, gaps: report.gaps, known_ns: report.known[0], all_ns: report.all[0],
      rows: report.tables.flatMap((table) => rows_of(report, table)), text: found.reports.length ? [] : lines_of(report) });
  }
  const lanes = of_page.lanes_find(trace);
  found.wakeups = lanes.wakeups.length;
  found.drawn = lanes.disks.map((disk) => [disk.lanes.length, disk.left]);
  found.tip = trace.events.n ? of_page.Page.prototype.lines_of.call({ trace }, { row: {}, event: trace.events.n - 1 }).map(([line]) => line) : [];
  found.threads = [...lanes.threads.values()].map((t) => ({ tid: t.tid, names: [...t.names], depth: t.calls.length, events: t.events.length }));
  process.stdout.write(JSON.stringify(found));
}

main();
