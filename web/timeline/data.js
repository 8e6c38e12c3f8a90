'use strict';
// The trace as the page works with it. The embedded JSON:
//   summary  what `troika trace --json` prints
//   stages   names of the stages
//   passes   [number, rows, is decode, start ns, end ns]
//   events   columns with one entry for each event in order of start; those of zeros only are left
//            out. start and pass hold differences to the event before; times are in ns.
//            kind: index into kinds: [name, stage, device, layer, chunk, first row, rows, bytes,
//            copied bytes, multiply-adds]; name: index into names.

const page = JSON.parse(document.getElementById('trace').textContent);
const summary = page.summary;

function column(name, differences) {
  const source = page.events[name];
  const values = new Float64Array(page.events.count);
  if (!source) return values;
  let sum = 0;
  for (let i = 0; i < values.length; ++i) {
    sum = differences ? sum + source[i] : source[i];
    values[i] = sum;
  }
  return values;
}

const kMostLanes = 8;  // of a device; what would need more shares the last one

const trace = {
  count: page.events.count,
  kind: column('kind'),
  lane: column('lane').map((lane) => Math.min(lane, kMostLanes - 1)),
  start: column('start', true),
  took: column('took'),
  queued: column('queued'),  // from handing over to start
  pass: column('pass', true),
  wait: column('wait'),
  delay: column('delay'),
  critical: column('critical'),  // 1 for a task on the critical path
  predicted: column('predicted'),
};

function task(i) {
  const [name, stage, device, layer, chunk, rowBegin, rows, bytes, copyBytes, macs] =
      page.events.kinds[trace.kind[i]];
  return {
    name: page.events.names[name], stage, device, layer, chunk, rowBegin, rows, bytes, copyBytes,
    macs, pass: trace.pass[i], start: trace.start[i], took: trace.took[i],
    end: trace.start[i] + trace.took[i], queued: trace.queued[i], wait: trace.wait[i],
    delay: trace.delay[i], predicted: trace.predicted[i], critical: trace.critical[i] > 0,
  };
}

const stages = Uint8Array.from(trace.kind, (kind) => page.events.kinds[kind][1]);
const stageOf = (i) => stages[i];
const deviceOf = (i) => page.events.kinds[trace.kind[i]][2];

// The tasks of a device that do not overlap, in order: one list for each lane that is drawn.
const rows = [];
{
  const found = new Map();
  summary.devices.forEach((_, device) => found.set(device * kMostLanes, []));
  for (let i = 0; i < trace.count; ++i) {
    const key = deviceOf(i) * kMostLanes + trace.lane[i];
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(i);
  }
  for (const key of [...found.keys()].sort((a, b) => a - b)) {
    rows.push({device: Math.floor(key / kMostLanes), lane: key % kMostLanes,
               tasks: Float64Array.from(found.get(key))});
  }
}

// Passes in order of time, and the whole trace.
const passes = page.passes.map(([number, rowCount, decode, start, end]) => ({
  number, rows: rowCount, decode, start, end,
})).sort((a, b) => a.start - b.start);
const whole = {
  start: page.origin_to_first_ns,
  end: page.origin_to_first_ns + Math.max(summary.span_us * 1000, 1),
};

// The row that a task is drawn on.
const rowOf = (i) =>
    rows.find((row) => row.device === deviceOf(i) && row.lane === trace.lane[i]);

// The first place in a row's tasks for which `after` holds, as it does for all later ones.
function firstPlace(tasks, after) {
  let low = 0;
  let high = tasks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (after(tasks[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}
