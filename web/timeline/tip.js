// What is known of one task, beside it.

const tip = {box: document.getElementById('tip'), task: -1};

function tipEntries(one) {
  const start = one.start - whole.start;
  const entries = [['start', axisText(start, 1e3, start)], ['took', timeText(one.took)]];
  if (one.predicted > 0) {
    const off = 100 * (one.took / one.predicted - 1);
    const sign = off >= 0 ? '+' : '';
    entries.push(['predicted', `${timeText(one.predicted)} (took ${sign}${off.toFixed(0)} %)`]);
  }
  if (one.wait > 0) entries.push(['waited before', timeText(one.wait)]);
  if (one.delay > 0) entries.push(['planned delay', timeText(one.delay)]);
  if (one.critical && summary.devices.length > 1) entries.push(['critical path', 'yes']);
  if (one.queued > 0) entries.push(['queued before', timeText(one.queued)]);
  if (one.rows > 0) {
    const range = one.rowBegin > 0 || one.chunk >= 0
        ? ` (${countText(one.rowBegin)}\u2013${countText(one.rowBegin + one.rows - 1)})` : '';
    entries.push(['rows', countText(one.rows) + range]);
  }
  if (one.bytes > 0) {
    entries.push(['bytes', bytesText(one.bytes)]);
    if (one.took > 0) entries.push(['speed', digits(one.bytes / one.took) + ' GB/s']);
  }
  if (one.copyBytes > 0) entries.push(['of it copied', bytesText(one.copyBytes)]);
  if (one.macs > 0) {
    entries.push(['multiply-adds', digits(one.macs / 1e6) + ' M']);
    if (one.took > 0) entries.push(['rate', digits(2 * one.macs / one.took) + ' GFLOPS']);
  }
  return entries;
}

function showTip(i, point) {
  const {box} = tip;
  if (i < 0) {
    box.hidden = true;
    tip.task = -1;
    return;
  }
  if (tip.task !== i) {
    tip.task = i;
    const one = task(i);
    const place = [summary.devices[one.device].name, page.stages[one.stage], 'pass ' + one.pass];
    if (one.layer >= 0) place.push('layer ' + one.layer);
    if (one.chunk >= 0) place.push('chunk ' + one.chunk);
    if (summary.simulated) place.push('simulated');
    const list = element('dl', {});
    for (const [name, value] of tipEntries(one)) {
      list.append(element('dt', {}, name), element('dd', {}, value));
    }
    box.replaceChildren(element('strong', {}, one.name),
                        element('p', {}, place.join(' \u00b7 ')), list);
  }
  box.hidden = false;
  const width = box.parentElement.clientWidth;
  const fits = point.x + 14 + box.offsetWidth <= width;
  const left = fits ? point.x + 14 : point.x - 14 - box.offsetWidth;
  box.style.left = Math.min(Math.max(left, 0), Math.max(width - box.offsetWidth, 0)) + 'px';
  box.style.top = point.y + 18 + 'px';
}

// Beside the selected task, or away if that is not in view.
function showSelectedTip(width) {
  const i = view.selected;
  if (i < 0) return showTip(-1);
  const row = layout.rows.find((one) => one.row === rowOf(i));
  const scale = width / (view.end - view.start);
  const left = (trace.start[i] - view.start) * scale;
  const right = left + trace.took[i] * scale;
  if (right < 0 || left > width) return showTip(-1);
  showTip(i, {x: Math.min(Math.max((left + right) / 2, 0), width), y: row.y + row.height - 10});
}
