'use strict';
/*
 * text.js - the text of an event: its format over its parameters, as ktr/fmt.c prints it. Needs no page.
 *
 * As fmt.c counts bytes, each byte is a character until the whole text is there.
 */

const CONVERSION = /%(?:\{([A-Za-z_]\w*)\})?([-+ #0']*)(\*|\d+)?(?:(\.)(\*|\d+)?)?(hh|h|ll|l|j|z|t)?(pI4|pD|[diuxXocsp%])?/g;
const BITS = { hh: 8, h: 16, undefined: 32 };
const PAD_MAX = 4095, WIDTH_MAX = 100000;
const encoder = new TextEncoder(), decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const WIDE = /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]/g;

function bytes_of(text) {
  return text.replace(/[^ -~]+/g, (odd) => String.fromCharCode(...encoder.encode(odd)));
}

/** Until a byte 0. Each byte that is no UTF-8 becomes U+FFFD. */
function text_of(bytes) {
  return bytes.split('\0', 1)[0].replace(WIDE, (wide) => decoder.decode(Uint8Array.from([...wide], (byte) => byte.charCodeAt(0))));
}

/** The parameters of an event: numbers, or, of a %s, texts; {bad} is the number of a text that is not known. */
function event_args(trace, i) {
  const site = trace.sites[trace.events.site[i]];
  const from = new Numbers(trace.events.bytes, trace.events.args[i]);
  return site.strings.map((is_string) => {
    if (!is_string) return from.big();
    const line = from.next();
    if (line > 0) return trace.strings[line];
    const bad = from.big();
    return bad === 0n ? null : { bad };
  });
}

function pad(text, spec) {
  const blanks = ' '.repeat(Math.min(PAD_MAX, Math.max(0, spec.width - text.length)));
  return spec.left ? text + blanks : blanks + text;
}

function number_text(spec, value, negative, base) {
  const digits = value === 0n ? '' : spec.conv === 'X' ? value.toString(16).toUpperCase() : value.toString(base);
  let prefix = '';
  if (negative) prefix = '-';
  else if (spec.conv === 'd' && spec.plus) prefix = '+';
  else if (spec.conv === 'd' && spec.space) prefix = ' ';
  else if (spec.conv === 'p' || (spec.alt && base === 16 && value !== 0n)) prefix = spec.conv === 'X' ? '0X' : '0x';
  let least = spec.precision >= 0 ? spec.precision : 1;
  if (base === 8 && spec.alt && least <= digits.length) least = digits.length + 1;
  if (spec.precision < 0 && spec.zero && !spec.left) least = Math.max(least, spec.width - prefix.length);
  const zeros = '0'.repeat(Math.min(PAD_MAX, Math.max(0, least - digits.length)));
  return pad(prefix + zeros + digits, { ...spec, width: spec.width + zeros.length - Math.max(0, least - digits.length) });
}

function string_text(spec, value) {
  if (value && value.bad) return `(bad 0x${value.bad.toString(16)})`;
  return pad(bytes_of(value === null || value === 0n ? '(null)' : value).slice(0, spec.precision < 0 ? undefined : spec.precision), spec);
}

function value_text(spec, value) {
  if (spec.conv === 's') return string_text(spec, value);
  const bits = spec.conv === 'p' ? 64 : BITS[spec.type] || 64;
  const plain = BigInt.asUintN(bits, value);
  switch (spec.conv) {
    case 'd': {
      const is = BigInt.asIntN(bits, value);
      return number_text(spec, is < 0n ? -is : is, is < 0n, 10);
    }
    case 'u': return number_text(spec, plain, false, 10);
    case 'o': return number_text(spec, plain, false, 8);
    case 'I': return pad([0n, 8n, 16n, 24n].map((shift) => value >> shift & 255n).join('.'), spec);
    case 'D': return pad(`${(value & 0xffffffffn) >> 20n},${value & 0xfffffn}`, spec);
    case 'c': return pad(String.fromCharCode(Number(value & 255n)), spec);
    default: return number_text(spec, plain, false, 16);
  }
}

/** @param {string} format @param {any[]} args */
function format_text(format, args) {
  let next = 0;
  const fetch = () => (next < args.length ? args[next++] : 0n);
  const number = () => Number(BigInt.asIntN(32, fetch()));
  return text_of(bytes_of(format).replace(CONVERSION, (all, _, flags, width, point, precision, type, conv) => {
    if (conv === undefined || conv === '%') return conv === '%' ? '%' : all;
    const spec = {
      conv: conv === 'i' ? 'd' : conv === 'pI4' ? 'I' : conv === 'pD' ? 'D' : conv, type: conv === 'c' ? undefined : type,
      left: flags.includes('-'), plus: flags.includes('+'), space: flags.includes(' '), alt: flags.includes('#'), zero: flags.includes('0'),
      width: width === '*' ? number() : Number(width || 0), precision: -1,
    };
    if (spec.width < 0) {
      spec.left = true;
      spec.width = Math.min(WIDTH_MAX, -spec.width);
    }
    if (point) spec.precision = precision === '*' ? Math.max(-1, number()) : Number(precision || 0);
    return value_text(spec, fetch());
  }));
}

function event_text(trace, i) {
  const site = trace.sites[trace.events.site[i]];
  return format_text(site.params ? site.fmt : `(site ${site.number})${' %#llx'.repeat(site.count)}`, event_args(trace, i));
}

/** The parameters with their names, as people read them. @returns {[string, string][]} */
function event_params(trace, i) {
  const site = trace.sites[trace.events.site[i]], args = event_args(trace, i);
  return args.map((value, n) => {
    const [name, bits] = site.params ? site.params[n] : [`p${n + 1}`, 64];
    if (bits === 0) return [name, typeof value === 'string' ? `"${value}"` : string_text({ width: 0, precision: -1 }, value)];
    const is = bits < 0 ? BigInt.asIntN(-bits, value) : BigInt.asUintN(bits, value);
    return [name, is > 4095n ? `${is} (0x${is.toString(16)})` : `${is}`];
  });
}

const UNITS = [['s', 1e9, 9], ['ms', 1e6, 6], ['µs', 1e3, 3], ['ns', 1, 0]];

/** `1.234 ms`: four digits. @param {number} ns */
function duration_text(ns) {
  const [unit, one, exact] = UNITS.find((u) => ns >= Number(u[1])) || UNITS[3];
  const v = ns / Number(one);
  return `${v.toFixed(Math.min(Number(exact), v < 10 ? 3 : v < 100 ? 2 : v < 1000 ? 1 : 0))} ${unit}`;
}

/** A number of units with so many digits after the point, exactly. @param {number | bigint} v */
function fixed_text(v, digits) {
  const text = `${v < 0 ? -v : v}`.padStart(digits + 1, '0');
  return `${v < 0 ? '-' : ''}${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** Seconds since boot. @param {number} ns since trace.base */
function seconds_text(trace, ns) {
  return fixed_text(BigInt(Math.round(ns)) + trace.base, 9);
}

function seconds_read(trace, text) {
  const [whole, part = ''] = text.split('.');
  return Number(BigInt(whole + part.padEnd(9, '0').slice(0, 9)) - trace.base);
}

/** A part of all, in percent, rounded as print.c does. */
function share_text(part, all) {
  return fixed_text(all ? (BigInt(part) * 10000n + BigInt(all) / 2n) / BigInt(all) : 0n, 2);
}
