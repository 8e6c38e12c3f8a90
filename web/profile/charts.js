'use strict';
const profile = JSON.parse(document.getElementById('profile').textContent);
const charts = document.getElementById('charts');
const colour = i => `var(--c${i % 6})`;
const number = x => x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toPrecision(2);

function element(name, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function section(title, note) {
  const made = document.createElement('section');
  const heading = document.createElement('h2');
  heading.textContent = title;
  const text = document.createElement('p');
  text.className = 'muted';
  text.textContent = note;
  made.append(heading, text);
  charts.append(made);
  return made;
}

// Curves of [x, y] over logarithmic axes; `steps` draws a staircase that rises to the next point.
function plot(parent, curves, xName, yName, steps) {
  const drawn = curves.filter(c => c.points.length > 0);
  if (drawn.length === 0) return;
  const width = Math.max(320, Math.min(1000, parent.clientWidth - 28)), height = 300;
  const left = 58, right = 14, top = 12, bottom = 40;
  const all = drawn.flatMap(c => c.points);
  const bounds = i => {
    const values = all.map(p => p[i]).filter(v => v > 0);
    const low = Math.min(...values), high = Math.max(...values);
    return high > low ? [low, high] : [low / 2, high * 2];
  };
  const [xLow, xHigh] = bounds(0), [yLow, yHigh] = bounds(1);
  const x = v => left + (width - left - right) * Math.log(v / xLow) / Math.log(xHigh / xLow);
  const y = v => height - bottom - (height - top - bottom) * Math.log(v / yLow) / Math.log(yHigh / yLow);
  const svg = element('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img',
                              'aria-label': `${yName} against ${xName}`});
  const ticks = (low, high, base) => {
    const values = [];
    for (let e = Math.ceil(Math.log(low) / Math.log(base) - 1e-9); base ** e <= high * (1 + 1e-9); ++e)
      values.push(base ** e);
    const every = Math.ceil(values.length / 8);
    return values.filter((_, i) => i % every === 0);
  };
  for (const v of ticks(xLow, xHigh, 2)) {
    svg.append(element('line', {class: 'grid', x1: x(v), x2: x(v), y1: top, y2: height - bottom}),
               element('text', {x: x(v), y: height - bottom + 16, 'text-anchor': 'middle'}, String(v)));
  }
  for (const v of ticks(yLow, yHigh, yHigh / yLow > 200 ? 10 : 2)) {
    svg.append(element('line', {class: 'grid', x1: left, x2: width - right, y1: y(v), y2: y(v)}),
               element('text', {x: left - 6, y: y(v) + 4, 'text-anchor': 'end'}, number(v)));
  }
  svg.append(element('text', {x: width - right, y: height - 6, 'text-anchor': 'end'}, xName),
             element('text', {x: left + 4, y: top + 10}, yName));
  const legend = document.createElement('ul');
  legend.className = 'legend';
  drawn.forEach((curve, i) => {
    const points = curve.points.filter(p => p[0] > 0 && p[1] > 0).sort((a, b) => a[0] - b[0]);
    const stairs = steps && curve.stairs;
    let path = '';
    points.forEach((p, j) => {
      if (j === 0) path = `M${x(p[0])},${y(p[1])}`;
      else path += stairs ? `V${y(p[1])}H${x(p[0])}` : `L${x(p[0])},${y(p[1])}`;
    });
    svg.append(element('path', {class: 'curve', d: path, stroke: colour(i)}));
    for (const p of points) {
      const dot = element('circle', {cx: x(p[0]), cy: y(p[1]), r: 3.5, fill: colour(i)});
      dot.append(element('title', {}, `${curve.name}: ${xName} ${p[0]}, ${yName} ${number(p[1])}`));
      svg.append(dot);
    }
    const entry = document.createElement('li');
    const box = document.createElement('i');
    box.style.background = colour(i);
    entry.append(box, curve.name);
    legend.append(entry);
  });
  parent.append(svg, legend);
}

function table(parent, head, rows) {
  const scroll = document.createElement('div');
  scroll.className = 'scroll';
  const made = document.createElement('table');
  const add = (cells, kind) => {
    const row = made.insertRow();
    for (const cell of cells) {
      const one = document.createElement(kind);
      one.textContent = cell;
      row.append(one);
    }
  };
  add(head, 'th');
  for (const row of rows) add(row, 'td');
  scroll.append(made);
  parent.append(scroll);
}

const shapes = device => {
  const byShape = new Map();
  for (const p of device.products) {
    const key = `${p.n}x${p.k}${device.chooses_order ? ', ' + p.in_place + ' in place' : ''}`;
    if (!byShape.has(key)) byShape.set(key, {n: p.n, k: p.k, order: p.in_place, points: []});
    byShape.get(key).points.push(p);
  }
  return [...byShape].map(([name, s]) => ({name, ...s}));
};
// The shapes with the most lengths: whole weights, not slices.
const whole = device => {
  const all = shapes(device);
  const most = Math.max(...all.map(s => s.points.length), 0);
  return all.filter(s => s.points.length > 0.7 * most).sort((a, b) => b.n * b.k - a.n * a.k).slice(0, 6);
};
const gflops = p => 2e-3 * p.rows * p.n * p.k / p.time.median_us;
const stairs = device => device.standard_rows.length > 0 || device.row_tile > 1;

const m = profile.machine;
document.getElementById('about').textContent =
  `${profile.model.name} (${profile.model.type}) on ${m.cpu}, ${m.cores} cores; governor ${m.governor}, ` +
  `profile ${m.power_profile}, source ${m.power_source}; ` +
  (m.meters.length ? m.meters.map(x => `${x.name} ${x.mean_w.toFixed(1)} W`).join(', ') : 'no power meter') +
  `. ${new Date(profile.time * 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC, ` +
  `${profile.took_s.toFixed(0)} s.`;

// Between two steps of a static device the time is the next step's: the speed is a saw.
function speeds(device, points) {
  const sorted = [...points].sort((a, b) => a.rows - b.rows);
  return sorted.flatMap((p, i) => {
    const tooth = stairs(device) && i > 0 && sorted[i - 1].rows + 1 < p.rows;
    return [...(tooth ? [[sorted[i - 1].rows + 1, gflops({...p, rows: sorted[i - 1].rows + 1})]] : []),
            [p.rows, gflops(p)]];
  });
}
const speed = section('Speed against size', 'The largest product of a layer. Linear devices rise and then stay; ' +
                      'static ones lose between their steps.');
plot(speed, profile.devices.map(d => {
  const main = whole(d)[0];
  return {name: main ? `${d.name}, ${main.name}` : d.name,
          points: main ? speeds(d, main.points) : []};
}), 'rows', 'GFLOPS', false);
for (const d of profile.devices) {
  const one = section(`${d.name}: time against rows`,
    `${d.description}. ` + (d.standard_rows.length ? 'A staircase: rows cost as much as the next standard length.' :
      d.row_tile > 1 ? `A staircase of ${d.row_tile} rows a step.` : 'Linear between measured points.') +
    (d.n_tile > 1 ? ` Outputs are padded to ${d.n_tile}.` : '') +
    ` Largest error at ${d.checks.length} points held out: ` +
    `${(100 * Math.max(0, ...d.checks.map(c => Math.abs(c.predicted_us / c.measured_us - 1)))).toFixed(1)} %.`);
  plot(one, whole(d).map(s => ({name: s.name, stairs: stairs(d),
    points: s.points.map(p => [p.rows, p.time.median_us])})), 'rows', 'us', true);
}
const shape = section('Shape and order', 'Speed of each shape at the longest length that all of its kind have. ' +
                      'Where the order of operands matters there is a line for either one.');
table(shape, ['device, outputs x inputs', 'rows', 'us', 'GFLOPS', '+- %'], profile.devices.flatMap(d =>
  whole(d).map(s => {
    const p = s.points.reduce((a, b) => b.rows > a.rows ? b : a);
    return [`${d.name}, ${s.name}`, p.rows, number(p.time.median_us), number(gflops(p)),
            number(100 * p.time.deviation_us / p.time.median_us || 0)];
  })));
const memory = section('Bandwidth', 'Reading stored weights with one row, alone and in pairs.');
table(memory, ['device', 'GB/s', 'keeps'], [
  ...profile.devices.map(d => [`${d.name} alone`, number(d.read_gbps), '']),
  ...profile.pairs.map(p => [`${p.first} and ${p.second}`, number(p.together_gbps),
    `${(100 * p.first_keeps).toFixed(0)} % and ${(100 * p.second_keeps).toFixed(0)} %`])]);
const sync = section('Launching and waiting', 'Microseconds.');
table(sync, ['device', 'task', 'submit', 'idle start', 'next in queue', 'notice'], profile.devices.map(d =>
  [d.name, ...['task_us', 'submit_us', 'drained_us', 'queued_us', 'notice_us'].map(k => number(d.launch[k]))]));
if (profile.pairs.length) {
  table(sync, ['join of', 'in the queue', 'by a blocking caller'], profile.pairs.map(p =>
    [`${p.first} and ${p.second}`, number(p.join_us), number(p.blocking_join_us)]));
}
