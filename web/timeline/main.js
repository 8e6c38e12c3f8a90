// Puts the page together.

const byId = (id) => document.getElementById(id);

function fillHead() {
  byId('title').textContent = summary.title || 'Timeline';
  byId('origin').textContent = summary.simulated ? 'simulated' : 'measured';
  byId('origin').classList.toggle('simulated', summary.simulated);
  byId('description').textContent = summary.description;
  byId('description').hidden = !summary.description;
  const remarks = [];
  if (summary.simulated) {
    remarks.push('SIMULATED: calculated from the description of a machine. ' +
                 'Nothing on this page was measured.');
  }
  if (summary.stretch !== 1) {
    remarks.push(`Stretched: every time is ${summary.stretch} times ` +
                 'that of the machine described.');
  }
  if (trace.count === 0) remarks.push('This trace holds no tasks.');
  for (const id of ['phases', 'stages', 'longest']) byId(id).hidden = trace.count === 0;
  byId('banner').textContent = remarks.join(' ');
  byId('banner').hidden = remarks.length === 0;
}

function fillLegend() {
  const used = new Set();
  for (const kind of page.events.kinds) used.add(kind[1]);
  const entry = (name, key, swatch) => {
    const attributes = {type: 'button', 'aria-pressed': 'true', title: 'Show or hide'};
    const button = element('button', attributes, swatch, name);
    button.addEventListener('click', () => {
      if (!view.hidden.delete(key)) view.hidden.add(key);
      button.setAttribute('aria-pressed', String(!view.hidden.has(key)));
      changed();
    });
    byId('legend').append(element('li', {}, button));
  };
  page.stages.forEach((stage, i) => {
    if (!used.has(i)) return;
    entry(stage === 'join' ? 'join, gather' : stage, i,
          element('span', {class: 'swatch', style: {background: `var(--stage-${i})`}}));
  });
  const sum = (key) => summary.devices.reduce((all, device) => all + device[key], 0);
  const gaps = [['waiting for another device', 'wait'], ['planned delay', 'delay']];
  for (const [name, kind] of gaps) {
    if (sum(kind + '_us') > 0) entry(name, kind, element('span', {class: 'swatch ' + kind}));
  }
  if (summary.devices.length > 1) {
    entry('critical path', 'critical', element('span', {class: 'swatch critical'}));
  } else {
    view.hidden.add('critical');  // it is all of one device
  }
}

function wireToolbar() {
  for (const id of ['pass', 'before', 'after']) byId(id).disabled = passes.length === 0;
  byId('all').addEventListener('click', () => show(whole.start, whole.end));
  byId('before').addEventListener('click', () => stepPass(-1));
  byId('after').addEventListener('click', () => stepPass(1));
  byId('in').addEventListener('click', () => zoom(1 / 2));
  byId('out').addEventListener('click', () => zoom(2));
  byId('pass').addEventListener('change', () => {
    const wanted = passes.findIndex((pass) => pass.number === Number(byId('pass').value));
    if (byId('pass').value !== '' && wanted >= 0) showPass(wanted);
    else changed();
  });
}

function updateToolbar() {
  const seen = seenPass();
  const span = view.end - view.start;
  byId('all').setAttribute('aria-pressed', String(span >= whole.end - whole.start));
  byId('before').disabled = passes.length === 0 || seen === 0;
  byId('after').disabled = passes.length === 0 || seen === passes.length - 1;
  byId('pass').value = seen >= 0 ? passes[seen].number : '';
  const of = seen >= 0 ? passText(passes[seen]) + ' \u00b7 ' : '';
  const [from, to] = [view.start, view.end].map(
      (ns) => axisText(ns - whole.start, span / 50, view.end - whole.start));
  byId('window').textContent = `${of}${from} \u2013 ${to}, ${timeText(span)} long`;
}

{
  readColours();
  fillHead();
  fillFigures();
  fillDevices();
  fillPhases();
  fillStages();
  fillPredictions();
  fillLongest();
  fillLegend();
  wireToolbar();

  const lanes = byId('lanes');
  // The task under the pointer, else the selected one.
  let hovered = null;
  const updateTip = () => {
    const under = hovered ? taskAt(hovered, lanes.clientWidth) : -1;
    if (under >= 0) showTip(under, hovered);
    else showSelectedTip(lanes.clientWidth);
  };
  handlePointers(lanes, (point) => {
    hovered = point;
    updateTip();
  }, (point) => {
    hovered = null;
    view.selected = taskAt(point, lanes.clientWidth);
    changed();
    lanes.focus({preventScroll: true});
  });
  lanes.addEventListener('dblclick', (event) => {
    const box = lanes.getBoundingClientRect();
    const point = {x: event.clientX - box.left, y: event.clientY - box.top};
    const found = taskAt(point, lanes.clientWidth);
    if (found < 0) return;
    const {start, took, end} = task(found);
    show(start - 3 * took, end + 3 * took);
  });
  lanes.addEventListener('keydown', handleKey);

  view.listeners.push(() => {
    drawOverview();
    drawLanes(lanes);
    updateToolbar();
    updateTip();
  });
  new ResizeObserver(changed).observe(lanes);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    readColours();
    changed();
  });
  changed();
}
