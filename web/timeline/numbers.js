// Numbers as the page shows them.

function digits(x) {
  const size = Math.abs(x);
  return size >= 100 ? x.toFixed(0) : size >= 10 ? x.toFixed(1) : x.toFixed(2);
}

function timeText(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return digits(ns / 1e9) + ' s';
  if (size >= 1e6) return digits(ns / 1e6) + ' ms';
  if (size >= 1e3) return digits(ns / 1e3) + ' \u00b5s';
  return ns.toFixed(0) + ' ns';
}

function bytesText(bytes) {
  if (bytes >= 1e9) return digits(bytes / 1e9) + ' GB';
  if (bytes >= 1e6) return digits(bytes / 1e6) + ' MB';
  if (bytes >= 1e3) return digits(bytes / 1e3) + ' kB';
  return bytes.toFixed(0) + ' B';
}

const countText = (x) => x.toLocaleString('en-US');
const ratio = (part, all) => all > 0 ? part / all : 0;
const percentText = (part, all) => (100 * ratio(part, all)).toFixed(1) + ' %';
const numberOf = (n, one, many) => `${countText(n)} ${n === 1 ? one : many}`;
const rowsText = (rows) => numberOf(rows, 'row', 'rows');
const passText = (pass) => `${pass.decode ? 'decode' : 'prefill'}, ${rowsText(pass.rows)}`;

// Steps of the time axis: 1, 2 or 5 times a power of ten, `most` of them in `span`.
function tickStep(span, most) {
  const rough = Math.max(span / most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// A time among others that are `step` apart and go up to `most`.
function axisText(ns, step, most) {
  const [unit, name] = most >= 1e9 ? [1e9, 's'] : most >= 1e6 ? [1e6, 'ms'] :
      most >= 1e3 ? [1e3, '\u00b5s'] : [1, 'ns'];
  const decimals = Math.min(Math.max(Math.ceil(Math.log10(unit / Math.max(step, 1)) - 1e-9), 0), 9);
  return (ns / unit).toFixed(decimals) + ' ' + name;
}

// A new element with text or children; text is never taken for markup.
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'style') Object.assign(made.style, value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// A <dl> entry for each [name, value]; a third part is a smaller remark.
function fillList(list, entries) {
  for (const [name, value, remark] of entries) {
    const dd = element('dd', {}, value);
    if (remark) dd.append(element('small', {}, remark));
    list.append(element('div', {}, element('dt', {}, name), dd));
  }
}
