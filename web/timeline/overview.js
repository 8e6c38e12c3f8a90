// The strip that shows the whole trace, and in it the part that is seen.

const kOverviewLane = 16;
const overview = {drawn: null, canvas: document.getElementById('overview')};
overview.height = 6 + summary.devices.length * (kOverviewLane + 3);

// What does not change with the view is drawn once.
function drawOverview() {
  const {context, width, height} = prepare(overview.canvas, overview.height);
  const scale = window.devicePixelRatio || 1;
  const key = [width, scale, colours.panel, ...view.hidden].join();
  if (!overview.drawn || overview.key !== key) {
    context.fillStyle = colours.track;
    context.fillRect(0, 0, width, height);
    for (const {row} of layout.rows) {
      const box = {x: 0, y: 4 + row.device * (kOverviewLane + 3), width, height: kOverviewLane};
      drawDensity(context, row.tasks, [0, row.tasks.length], box, whole);
    }
    overview.drawn = document.createElement('canvas');
    overview.drawn.width = overview.canvas.width;
    overview.drawn.height = overview.canvas.height;
    overview.drawn.getContext('2d').drawImage(overview.canvas, 0, 0);
    overview.key = key;
  } else {
    context.drawImage(overview.drawn, 0, 0, width, height);
  }
  const [left, right] = overviewWindow(width);
  context.fillStyle = colours.panel;
  context.globalAlpha = 0.65;
  context.fillRect(0, 0, left, height);
  context.fillRect(right, 0, width - right, height);
  context.globalAlpha = 1;
  context.strokeStyle = colours.accent;
  context.lineWidth = 2;
  context.strokeRect(left + 1, 1, Math.max(right - left - 2, 1), height - 2);
}

function overviewWindow(width) {
  const scale = width / (whole.end - whole.start);
  const left = (view.start - whole.start) * scale;
  return [left, Math.max((view.end - whole.start) * scale, left + 2)];
}

// A drag inside the window moves it; one outside selects a new one; a click centres it.
{
  const canvas = overview.canvas;
  let drag = null;
  const placeOf = (event) => event.clientX - canvas.getBoundingClientRect().left;
  const timeOf = (x) => whole.start + (x / canvas.clientWidth) * (whole.end - whole.start);
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const x = placeOf(event);
    const [left, right] = overviewWindow(canvas.clientWidth);
    const everything = view.end - view.start >= (whole.end - whole.start) * 0.999;
    const inside = !everything && x >= left - 4 && x <= right + 4;
    drag = {x, inside, start: view.start, end: view.end, moved: false};
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) return;
    const x = placeOf(event);
    drag.moved = drag.moved || Math.abs(x - drag.x) > 3;
    if (!drag.moved) return;
    const shift = timeOf(x) - timeOf(drag.x);
    if (drag.inside) show(drag.start + shift, drag.end + shift);
    else show(Math.min(timeOf(x), timeOf(drag.x)), Math.max(timeOf(x), timeOf(drag.x)));
  });
  canvas.addEventListener('pointerup', (event) => {
    if (drag && !drag.moved) {
      const half = (drag.end - drag.start) / 2;
      const at = timeOf(placeOf(event));
      show(at - half, at + half);
    }
    drag = null;
  });
  canvas.addEventListener('pointercancel', () => { drag = null; });
}
