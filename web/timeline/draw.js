// Draws the lanes of all devices, and finds the task under a point of them.

const kTicks = 20;     // heights in CSS pixels
const kRibbon = 18;    // of the passes
const kLabel = 22;
const kLane = 34;
const kThinLane = 20;  // of a device with several lanes
const kGap = 10;
const kCritical = 4;   // height of the line along tasks of the critical path
const kColumn = 2;     // width of a column where tasks are too small to be drawn one by one

const colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue('--' + name).trim();
  const names = ['panel', 'ink', 'muted', 'line', 'accent', 'band', 'track', 'wait', 'delay',
                 'critical', 'on-stage'];
  for (const name of names) colours[name] = get(name);
  colours.stages = page.stages.map((_, i) => get('stage-' + i));
  colours.waitHatch = hatch(colours.wait, 1);
  colours.delayHatch = hatch(colours.delay, -1);
}

function hatch(colour, slope) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const context = tile.getContext('2d');
  context.strokeStyle = colour;
  context.lineWidth = 1.6;
  context.beginPath();
  for (const shift of [-6, 0, 6]) {
    context.moveTo(shift, slope > 0 ? 6 : 0);
    context.lineTo(shift + 6, slope > 0 ? 0 : 6);
  }
  context.stroke();
  return context.createPattern(tile, 'repeat');
}

// Sizes the canvas to its place on the page; all drawing is in CSS pixels.
function prepare(canvas, height) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.style.height = height + 'px';
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = 'middle';
  return {context, width, height};
}

const layout = {rows: [], labels: [], height: 0};
{
  let y = kTicks + kRibbon + 4;
  for (let device = 0; device < summary.devices.length; ++device) {
    layout.labels.push({device, y});
    y += kLabel;
    const own = rows.filter((row) => row.device === device);
    const height = own.length > 1 ? kThinLane : kLane;
    for (const row of own) {
      layout.rows.push({row, y, height});
      y += height + 2;
    }
    y += kGap;
  }
  layout.height = y;
}

const tasksOfDevices = summary.devices.map((_, device) => Float64Array.from(
    rows.filter((row) => row.device === device).flatMap((row) => [...row.tasks])).sort());

// Share of the time seen in which the device ran something.
function busyInView(device) {
  const tasks = tasksOfDevices[device];
  let busy = 0;
  let until = view.start;
  const first = Math.max(firstPlace(tasks, (i) => trace.start[i] >= view.start) - 1, 0);
  for (let place = first; place < tasks.length; ++place) {
    const i = tasks[place];
    if (trace.start[i] >= view.end) break;
    const end = Math.min(trace.start[i] + trace.took[i], view.end);
    const start = Math.max(trace.start[i], until);
    if (end > start) {
      busy += end - start;
      until = end;
    }
  }
  return busy / (view.end - view.start);
}

// The places of a row's tasks that touch [start, end), the gap before the last of them included.
function placesIn(tasks, start, end) {
  const first = firstPlace(tasks, (i) => trace.start[i] + trace.took[i] > start);
  const last = firstPlace(tasks, (i) => trace.start[i] >= end);
  return [first, Math.min(last + 1, tasks.length)];
}

// Adds to each column what [from, to), in columns, covers of it.
function addShares(sums, stride, kind, from, to) {
  const columns = sums.length / stride;
  from = Math.max(from, 0);
  to = Math.min(to, columns);
  while (from < to) {
    const next = Math.min(Math.floor(from) + 1, to);
    sums[Math.floor(from) * stride + kind] += next - from;
    from = next;
  }
}

// Adds up what each column of pixels holds, and fills it from below in proportion.
function drawDensity(context, tasks, [first, last], box, range) {
  const columns = Math.ceil(box.width / kColumn);
  const perColumn = (range.end - range.start) / columns;
  const kinds = page.stages.length + 2;
  const sums = new Float64Array(columns * kinds);
  const add = (kind, start, end) => addShares(sums, kinds, kind, (start - range.start) / perColumn,
                                              (end - range.start) / perColumn);
  const shown = [...page.stages.keys(), 'wait', 'delay'].map((key) => !view.hidden.has(key));
  for (let place = first; place < last; ++place) {
    const i = tasks[place];
    const start = trace.start[i];
    const waits = start - trace.wait[i];
    if (shown[stages[i]]) add(stages[i], start, start + trace.took[i]);
    if (trace.wait[i] > 0 && shown[kinds - 2]) add(kinds - 2, waits, start);
    if (trace.delay[i] > 0 && shown[kinds - 1]) add(kinds - 1, waits - trace.delay[i], waits);
  }
  for (let kind = 0; kind < kinds; ++kind) {
    context.fillStyle = kind < kinds - 2 ? colours.stages[kind] :
        kind === kinds - 2 ? colours.wait : colours.delay;
    context.globalAlpha = kind < kinds - 2 ? 1 : 0.3;
    for (let column = 0; column < columns; ++column) {
      const share = sums[column * kinds + kind];
      if (share <= 0) continue;
      let below = 0;
      for (let k = 0; k < kind; ++k) below += sums[column * kinds + k];
      const y = box.y + box.height * (1 - Math.min(below, 1));
      const height = box.height * Math.min(share, Math.max(1 - below, 0));
      context.fillRect(box.x + column * kColumn, y - height, kColumn, height);
    }
  }
  context.globalAlpha = 1;
}

// The longest of a task's names that has room.
function taskLabel(context, i, room) {
  const {name, layer} = task(i);
  const word = name.split(' ', 1)[0];
  const names = layer >= 0 ? [name, `${word} ${layer}`, word] : [name, word];
  return names.find((one) => context.measureText(one).width <= room) || '';
}

function drawTasks(context, tasks, [first, last], box) {
  const scale = box.width / (view.end - view.start);
  const x = (ns) => Math.min(Math.max((ns - view.start) * scale, -2), box.width + 2);
  context.font = '11px system-ui, sans-serif';
  for (let place = first; place < last; ++place) {
    const i = tasks[place];
    const start = trace.start[i];
    const waits = start - trace.wait[i];
    const left = x(start);
    if (trace.wait[i] > 0 && !view.hidden.has('wait')) {
      context.fillStyle = colours.waitHatch;
      context.fillRect(x(waits), box.y, left - x(waits), box.height);
    }
    if (trace.delay[i] > 0 && !view.hidden.has('delay')) {
      context.fillStyle = colours.delayHatch;
      const from = x(waits - trace.delay[i]);
      context.fillRect(from, box.y, x(waits) - from, box.height);
    }
    if (view.hidden.has(stageOf(i))) continue;
    const apart = trace.took[i] * scale > 4 ? 1 : 0;
    const width = Math.max(x(start + trace.took[i]) - left - apart, 0.75);
    context.fillStyle = colours.stages[stageOf(i)];
    context.fillRect(left, box.y, width, box.height);
    const from = Math.max(left, 0) + 5;
    const room = Math.min(left + width, box.width) - from - 3;
    if (room < 12 || box.height < 16) continue;
    context.fillStyle = colours['on-stage'];
    context.fillText(taskLabel(context, i, room), from, box.y + box.height / 2 + 0.5);
  }
}

// A line along the tasks of the critical path; where tasks are too small to be told apart, as dark
// as their share of the moment.
function drawCritical(context, tasks, [first, last], box, dense) {
  if (view.hidden.has('critical')) return;
  const scale = box.width / (view.end - view.start);
  const shares = dense ? new Float64Array(Math.ceil(box.width / kColumn)) : null;
  const y = box.y + box.height - kCritical;
  context.fillStyle = colours.critical;
  for (let place = first; place < last; ++place) {
    const i = tasks[place];
    if (!trace.critical[i] || view.hidden.has(stageOf(i))) continue;
    const left = Math.max((trace.start[i] - view.start) * scale, -2);
    const right = Math.min((trace.start[i] + trace.took[i] - view.start) * scale, box.width + 2);
    if (dense) {
      addShares(shares, 1, 0, left / kColumn, right / kColumn);
    } else {
      const apart = right - left > 4 ? 1 : 0;
      context.fillRect(left, y, Math.max(right - left - apart, 1), kCritical);
    }
  }
  if (!dense) return;
  shares.forEach((share, column) => {
    context.globalAlpha = Math.min(share, 1);
    context.fillRect(box.x + column * kColumn, y, kColumn, kCritical);
  });
  context.globalAlpha = 1;
}

function outline(context, row, y, height, width) {
  if (view.selected < 0 || rowOf(view.selected) !== row) return;
  const scale = width / (view.end - view.start);
  const left = (trace.start[view.selected] - view.start) * scale;
  context.strokeStyle = colours.ink;
  context.lineWidth = 2;
  const taskWidth = Math.max(trace.took[view.selected] * scale, 2);
  context.strokeRect(left - 1, y - 1, taskWidth + 1, height + 2);
}

// The passes as a ribbon above the lanes, where they are wide enough to be told apart.
function drawPasses(context, width) {
  const scale = width / (view.end - view.start);
  const first = firstPlace(passes, (pass) => pass.end > view.start);
  const last = firstPlace(passes, (pass) => pass.start >= view.end);
  if (last - first > width / 6) return;
  context.font = '11px system-ui, sans-serif';
  context.lineWidth = 1;
  for (let i = first; i < last; ++i) {
    const pass = passes[i];
    const left = Math.max((pass.start - view.start) * scale, 0);
    const right = Math.min((pass.end - view.start) * scale, width);
    context.fillStyle = colours.band;
    context.fillRect(left, kTicks, Math.max(right - left - 1, 1), kRibbon - 2);
    const texts = [`pass ${pass.number}: ${passText(pass)}, ${timeText(pass.end - pass.start)}`,
                   `pass ${pass.number}`, String(pass.number)];
    const text = texts.find((one) => context.measureText(one).width < right - left - 6);
    context.fillStyle = colours.muted;
    context.textAlign = 'center';
    if (text) context.fillText(text, (left + right) / 2, kTicks + kRibbon / 2 - 0.5);
  }
  context.textAlign = 'left';
}

function drawAxis(context, width, height) {
  const span = view.end - view.start;
  const scale = width / span;
  const most = view.end - whole.start;
  context.font = '11px system-ui, sans-serif';
  let step = tickStep(span, width / 64);
  const roomOf = () => context.measureText(axisText(most, step, most)).width + 16;
  while (step * scale < roomOf() && step < span) step = tickStep(span, span / step - 1);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.textAlign = 'center';
  for (let at = Math.ceil((view.start - whole.start) / step) * step; at <= most; at += step) {
    const x = Math.round((at + whole.start - view.start) * scale) + 0.5;
    context.beginPath();
    context.moveTo(x, kTicks - 4);
    context.lineTo(x, height);
    context.stroke();
    const text = axisText(at, step, most);
    const half = context.measureText(text).width / 2;
    context.fillStyle = colours.muted;
    context.fillText(text, Math.min(Math.max(x, half + 1), width - half - 1), 9);
  }
  context.textAlign = 'left';
}

// The text, or as much of it as has room.
function fitted(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let letters = Math.min(text.length, 400);
  const short = () => text.slice(0, letters).trimEnd() + '\u2026';
  while (letters > 0 && context.measureText(short()).width > room) --letters;
  return letters > 0 ? short() : '';
}

function drawLabel(context, {device, y}, width) {
  const {name, description} = summary.devices[device];
  const busy = (100 * busyInView(device)).toFixed(1) + ' % busy here';
  const middle = y + kLabel / 2 + 1;
  context.font = '12px system-ui, sans-serif';
  context.fillStyle = colours.muted;
  context.textAlign = 'right';
  context.fillText(busy, width - 2, middle);
  const room = width - context.measureText(busy).width - 16;
  context.textAlign = 'left';
  context.font = '600 13px system-ui, sans-serif';
  context.fillStyle = colours.ink;
  const shown = fitted(context, name, room);
  context.fillText(shown, 2, middle);
  const after = context.measureText(shown).width + 12;
  context.font = '12px system-ui, sans-serif';
  context.fillStyle = colours.muted;
  context.fillText(fitted(context, description, room - after), after, middle);
}

function drawLanes(canvas) {
  const {context, width, height} = prepare(canvas, layout.height);
  drawAxis(context, width, height);
  drawPasses(context, width);
  for (const label of layout.labels) drawLabel(context, label, width);
  for (const {row, y, height: laneHeight} of layout.rows) {
    context.fillStyle = colours.track;
    context.fillRect(0, y, width, laneHeight);
    const places = placesIn(row.tasks, view.start, view.end);
    const box = {x: 0, y, width, height: laneHeight};
    const dense = places[1] - places[0] > width / 4;
    if (dense) drawDensity(context, row.tasks, places, box, view);
    else drawTasks(context, row.tasks, places, box);
    drawCritical(context, row.tasks, places, box, dense);
    outline(context, row, y, laneHeight, width);
  }
}

// The task at a point, or the one that the gap there belongs to; -1 if there is none near.
function taskAt({x, y}, width) {
  const found = layout.rows.find((one) => y >= one.y - 1 && y <= one.y + one.height + 1);
  if (!found) return -1;
  const perPixel = (view.end - view.start) / width;
  const at = view.start + x * perPixel;
  const tasks = found.row.tasks;
  const place = firstPlace(tasks, (i) => trace.start[i] + trace.took[i] > at);
  let best = -1;
  let least = 4 * perPixel;
  for (const near of [place - 1, place]) {
    if (near < 0 || near >= tasks.length) continue;
    const i = tasks[near];
    const from = trace.start[i] - trace.wait[i] - trace.delay[i];
    const distance = Math.max(from - at, at - trace.start[i] - trace.took[i], 0);
    if (distance <= least) {
      least = distance;
      best = i;
    }
  }
  return best;
}
