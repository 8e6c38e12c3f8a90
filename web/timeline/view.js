// What part of the trace is seen, and all the ways to change it.

const view = {start: whole.start, end: whole.end, hidden: new Set(), selected: -1, listeners: []};
const kLeastSpan = 20;  // ns

function changed() {
  if (view.pending) return;
  view.pending = requestAnimationFrame(() => {
    view.pending = 0;
    for (const listener of view.listeners) listener();
  });
}

function show(start, end) {
  const all = whole.end - whole.start;
  const span = Math.min(Math.max(end - start, Math.min(kLeastSpan, all)), all);
  const middle = (start + end) / 2;
  view.start = Math.min(Math.max(middle - span / 2, whole.start), whole.end - span);
  view.end = view.start + span;
  changed();
}

// `at` stays where it is on the screen.
function zoom(factor, at = (view.start + view.end) / 2) {
  const all = whole.end - whole.start;
  const span = Math.min(Math.max((view.end - view.start) * factor, Math.min(kLeastSpan, all)), all);
  const share = (at - view.start) / (view.end - view.start);
  const start = at - share * span;
  show(start, start + span);
}

function move(ns) {
  show(view.start + ns, view.end + ns);
}

// The pass that is seen as a whole, or -1.
function seenPass() {
  const span = view.end - view.start;
  if (span >= whole.end - whole.start && passes.length !== 1) return -1;
  const middle = (view.start + view.end) / 2;
  let best = -1;
  for (let i = 0; i < passes.length; ++i) {
    const pass = passes[i];
    if (pass.start <= middle && middle <= pass.end && span < 2 * (pass.end - pass.start)) best = i;
  }
  return best;
}

function showPass(i) {
  const pass = passes[Math.min(Math.max(i, 0), passes.length - 1)];
  if (!pass) return;
  const margin = (pass.end - pass.start) * 0.01 + 10;
  show(pass.start - margin, pass.end + margin);
}

// The pass before or after the middle of what is seen.
function stepPass(step) {
  const seen = seenPass();
  if (seen >= 0) return showPass(seen + step);
  const middle = (view.start + view.end) / 2;
  let at = 0;
  while (at < passes.length && passes[at].end < middle) ++at;
  showPass(step > 0 && view.end - view.start >= whole.end - whole.start ? 0 : at);
}

// Makes a task the selected one, and moves it into view if it is not there.
function select(i) {
  view.selected = i;
  if (i < 0) return changed();
  const {start, took, end} = task(i);
  const span = view.end - view.start;
  if (took > span || took < span / 50) {
    show(start - 6 * took - 500, end + 6 * took + 500);
  } else if (start < view.start || end > view.end) {
    show(start + took / 2 - span / 2, start + took / 2 + span / 2);
  } else {
    changed();
  }
}

// The next task on the row of the selected one, or the first one seen.
function stepTask(step) {
  const row = view.selected >= 0 ? rowOf(view.selected) : rows.find((one) => one.tasks.length > 0);
  if (!row) return;
  const place = view.selected < 0
      ? firstPlace(row.tasks, (i) => trace.start[i] >= view.start)
      : firstPlace(row.tasks, (i) => i >= view.selected) + step;
  select(row.tasks[Math.min(Math.max(place, 0), row.tasks.length - 1)]);
}

// The task that is under way on the next device at the time of the selected one.
function stepDevice(step) {
  if (view.selected < 0) return stepTask(0);
  const {device, start} = task(view.selected);
  const others = rows.filter((row) => row.lane === 0 && row.tasks.length > 0);
  const at = others.findIndex((row) => row.device === device) + step;
  if (at < 0 || at >= others.length) return;
  const tasks = others[at].tasks;
  const place = firstPlace(tasks, (i) => trace.start[i] + trace.took[i] > start);
  select(tasks[Math.min(place, tasks.length - 1)]);
}

const kKeys = {
  ArrowLeft: () => move((view.start - view.end) / 8),
  ArrowRight: () => move((view.end - view.start) / 8),
  ArrowUp: () => stepDevice(-1),
  ArrowDown: () => stepDevice(1),
  '+': () => zoom(1 / 1.5),
  '=': () => zoom(1 / 1.5),
  '-': () => zoom(1.5),
  '0': () => show(whole.start, whole.end),
  Home: () => show(whole.start, whole.end),
  '[': () => stepPass(-1),
  ']': () => stepPass(1),
  ',': () => stepTask(-1),
  '.': () => stepTask(1),
  Escape: () => select(-1),
};

function handleKey(event) {
  const action = kKeys[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
}

// Wheel, drag and pinch over a canvas on which the view fills the width.
function handlePointers(canvas, onHover, onTap) {
  const pointers = new Map();
  const timeAt = (x) => view.start + (x / canvas.clientWidth) * (view.end - view.start);
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  };
  let moved = 0;

  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 200 : 1;
    if (event.deltaX !== 0 && Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      const pixels = (event.deltaX || event.deltaY) * unit;
      move(pixels / canvas.clientWidth * (view.end - view.start));
    } else {
      zoom(Math.exp(event.deltaY * unit * 0.002), timeAt(place(event).x));
    }
  }, {passive: false});

  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, place(event));
    moved = pointers.size > 1 ? Infinity : 0;
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener('pointermove', (event) => {
    const now = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) return onHover(now);
    const perPixel = (view.end - view.start) / canvas.clientWidth;
    const other = [...pointers].find(([id]) => id !== event.pointerId);
    if (other) {
      const fixed = other[1].x;
      const apart = Math.max(Math.abs(now.x - fixed), 8);
      zoom(Math.max(Math.abs(before.x - fixed), 8) / apart, timeAt(fixed));
    } else {
      moved += Math.abs(now.x - before.x);
      if (moved > 3) {
        canvas.classList.add('dragging');
        move((before.x - now.x) * perPixel);
      }
    }
    pointers.set(event.pointerId, now);
  });

  const end = (event) => {
    if (pointers.delete(event.pointerId) && event.type === 'pointerup' && moved <= 3) {
      onTap(place(event));
    }
    if (pointers.size === 0) canvas.classList.remove('dragging');
  };
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', end);
  canvas.addEventListener('pointerleave', (event) => {
    if (event.pointerType === 'mouse') onHover(null);
  });
}
