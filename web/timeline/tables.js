// The figures and tables: what `troika trace` prints.

function fillFigures() {
  const entries = [['Whole trace', timeText(summary.span_us * 1000),
                    `${numberOf(summary.tasks, 'task', 'tasks')}, ` +
                        numberOf(summary.passes, 'pass', 'passes')]];
  for (const phase of summary.phases) {
    const speed = digits(phase.rows_per_s) + ' tok/s';
    const each = timeText(1000 * phase.span_us / phase.passes);
    entries.push(phase.name === 'prefill'
        ? ['Prefill', speed, `${rowsText(phase.rows)} in ${timeText(phase.span_us * 1000)}`]
        : ['Decode', speed, `${numberOf(phase.passes, 'pass', 'passes')}, ${each} each`]);
  }
  const joins = summary.devices.reduce((sum, device) => sum + device.joins, 0);
  const waits = summary.devices.reduce((sum, device) => sum + device.wait_us, 0);
  entries.push(['Joins', countText(joins), joins > 0 ? timeText(waits * 1000) + ' waited'
                                                     : 'no task waited for another device']);
  fillList(document.getElementById('figures'), entries);
}

// A bar of the whole time: each stage's share of it, waits, delays; what is left is idle.
function shareBar(device) {
  const sum = Object.values(device.stage_us).reduce((a, b) => a + b, 0);
  const parts = page.stages.map((stage, i) => {
    // Tasks that ran at once share the time in which they did.
    const us = ratio(device.stage_us[stage] || 0, sum) * device.busy_us;
    return [stage, us, {background: `var(--stage-${i})`}, 'part'];
  });
  parts.push(['waited', device.wait_us, {}, 'part wait']);
  parts.push(['delayed', device.delay_us, {}, 'part delay']);
  const bar = element('div', {class: 'bar', role: 'img'});
  const words = [];
  for (const [name, us, style, kind] of parts) {
    if (us <= 0) continue;
    const share = percentText(us, summary.span_us);
    words.push(`${name} ${share}`);
    bar.append(element('div', {class: kind, title: `${name} ${share}`,
                               style: {...style, width: 100 * ratio(us, summary.span_us) + '%'}}));
  }
  bar.setAttribute('aria-label', words.join(', ') || 'idle');
  return bar;
}

function fillDevices() {
  const place = document.getElementById('devices');
  for (const device of summary.devices) {
    const facts = element('dl', {class: 'facts'});
    const entries = [
      ['busy', timeText(device.busy_us * 1000)],
      ['tasks', countText(device.tasks)],
      ['joins', countText(device.joins)],
      ['waited', timeText(device.wait_us * 1000), percentText(device.wait_us, summary.span_us)],
    ];
    if (device.joins > 0) entries.push(['median wait', timeText(device.median_wait_us * 1000)]);
    if (device.delay_us > 0) entries.push(['planned delays', timeText(device.delay_us * 1000)]);
    if (summary.devices.length > 1) {
      entries.push(['critical path', timeText(device.critical_us * 1000),
                    (100 * device.critical_share).toFixed(1) + ' %']);
    }
    entries.push(['read and written', bytesText(device.bytes)]);
    if (device.copy_bytes > 0) entries.push(['of it copied', bytesText(device.copy_bytes)]);
    entries.push(['while busy', digits(device.gbps) + ' GB/s', digits(device.gflops) + ' GFLOPS']);
    fillList(facts, entries);
    const box = element('div', {class: 'device'},
        element('h3', {}, element('span', {}, device.name),
                element('b', {}, percentText(device.busy_us, summary.span_us) + ' busy')));
    if (device.description) box.append(element('p', {}, device.description));
    box.append(shareBar(device), facts);
    place.append(box);
  }
}

function addTable(place, head, body) {
  const heads = head.map((text) => element('th', {scope: 'col'}, text));
  const table = element('table', {}, element('thead', {}, element('tr', {}, ...heads)));
  const lines = element('tbody', {});
  for (const [first, ...others] of body) {
    lines.append(element('tr', {}, element('th', {scope: 'row', class: 'name'}, first),
                         ...others.map((text) => element('td', {}, text))));
  }
  table.append(lines);
  document.getElementById(place).append(element('div', {class: 'scroll'}, table));
  return lines;
}

function fillPhases() {
  const names = summary.devices.map((device) => device.name);
  addTable('phases', ['phase', 'passes', 'rows', 'time', 'per pass', ...names],
      summary.phases.map((phase) => [
        phase.name, countText(phase.passes), countText(phase.rows), timeText(phase.span_us * 1000),
        timeText(1000 * phase.span_us / phase.passes),
        ...phase.devices.map((device) => percentText(device.busy_us, phase.span_us) + ' busy'),
      ]));
}

function fillStages() {
  const used = page.stages.filter((stage) => summary.devices.some((d) => d.stage_us[stage] > 0));
  addTable('stages', ['stage', ...summary.devices.map((d) => d.name)], used.map((stage) => [
    stage, ...summary.devices.map((device) => {
      const us = device.stage_us[stage] || 0;
      return us > 0 ? `${timeText(us * 1000)} (${percentText(us, device.busy_us)})` : '\u2013';
    }),
  ]));
}

function fillPredictions() {
  const devices = summary.devices.filter((device) => device.predicted_tasks > 0);
  if (devices.length === 0) return;
  document.getElementById('predictions').hidden = false;
  const head = ['device', 'tasks', 'predicted', 'took', 'took / predicted'];
  addTable('predictions', head, devices.map((device) => [
    device.name, countText(device.predicted_tasks), timeText(device.predicted_us * 1000),
    timeText(device.measured_of_predicted_us * 1000),
    ratio(device.measured_of_predicted_us, device.predicted_us).toFixed(2),
  ]));
}

function fillLongest() {
  const order = Array.from({length: trace.count}, (_, i) => i)
      .sort((a, b) => trace.took[b] - trace.took[a] || a - b).slice(0, 12);
  const head = ['task', 'device', 'took', 'at', 'pass', 'rows'];
  const lines = addTable('longest', head, order.map((i) => {
    const one = task(i);
    return [one.name, summary.devices[one.device].name, timeText(one.took),
            timeText(one.start - whole.start), countText(one.pass), countText(one.rows)];
  }));
  [...lines.children].forEach((line, place) => {
    line.classList.add('link');
    line.tabIndex = 0;
    const go = () => {
      select(order[place]);
      document.getElementById('lanes').scrollIntoView({block: 'center'});
    };
    line.addEventListener('click', go);
    line.addEventListener('keydown', (event) => { if (event.key === 'Enter') go(); });
  });
}
