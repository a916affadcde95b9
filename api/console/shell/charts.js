// Charts of the last hour, drawn by uPlot. The page's colors are given to the canvas.
/* global uPlot */
import { el } from './dom.js';

const colors = ['--accent', '--good', '--wait', '--bad', '--fifth', '--sixth'];  // of lines, at most so many in a chart

// The canvas needs a color, not the name of one.
function colorOf(name) {
  const probe = el('i', { hidden: true });
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const height = 180;

// `lines` are the names of the lines. `format` makes a text of a value. The chart is `least` high at
// least. Returns the element, and a
// function that takes the times and the values of each line.
export function chart(page, title, lines, format, least) {
  const values = lines.map(() => el('b', {}));
  const legend = el('p', { className: 'legend' }, lines.map((line, i) =>
    el('span', {}, el('i', { className: `line-${i}`, 'aria-hidden': 'true' }), `${line} `, values[i])));
  const place = el('div', { className: 'plot', role: 'img', 'aria-label': title });
  const element = el('figure', { className: 'panel chart' }, el('figcaption', {}, el('h2', {}, title), legend), place);
  let plot = null;
  let data = [[], ...lines.map(() => [])];

  const tell = (index) => lines.forEach((_, i) => {
    const value = data[i + 1][index];
    values[i].textContent = value === null || value === undefined ? '–' : format(value);
  });

  const draw = () => {
    plot?.destroy();
    const ink = colorOf('--soft');
    const grid = { stroke: colorOf('--line'), width: 1 };
    plot = new uPlot({
      width: place.clientWidth || 400,
      height,
      padding: [10, 20, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false } },
      scales: {
        x: { range: () => [Math.min(data[0][0], data[0].at(-1) - 600), data[0].at(-1)] },
        y: { range: (_, __, most) => [0, Math.max(most * 1.1, least)] },
      },
      axes: [
        { stroke: ink, grid: { show: false }, ticks: { show: false }, space: 70, size: 28,
          values: (_, times) => times.map((time) => new Date(time * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false })) },
        { stroke: ink, grid, ticks: { show: false }, size: 56, space: 40, values: (_, all) => all.map(format) },
      ],
      series: [{}, ...lines.map((_, i) => ({ stroke: colorOf(colors[i]), width: 1.75, points: { show: false }, spanGaps: true }))],
      hooks: { setCursor: [({ cursor }) => tell(cursor.idx ?? data[0].length - 1)] },
    }, data, place);
  };
  new ResizeObserver(() => plot?.setSize({ width: place.clientWidth, height })).observe(place);
  addEventListener('themechange', () => plot && draw(), { signal: page.signal });

  return [element, (times, all) => {
    data = [times, ...all];
    if (plot) plot.setData(data);
    else draw();
    tell(times.length - 1);
    place.setAttribute('aria-label', `${title} in the last hour; now ${lines.map((line, i) => `${line} ${values[i].textContent}`).join(', ')}`);
  }];
}
