// The charts of the past. The portal has drawn them from few points; this fetches
// all of them: a line for the mean, a band from the lowest to the highest second,
// and nothing where nothing was heard. Times are in the viewer's zone.
import { number, plot } from "./plot.js";
import { refresh } from "./refresh.js";

let shown = null; // { panel, stop } of the panel now on the page

start();
document.addEventListener("berth:refreshed", start);

function start() {
  const panel = document.querySelector("[data-past]");
  if (shown && shown.panel === panel) return;
  shown?.stop();
  shown = panel && (panel.querySelector("[data-chart]") ? open(panel) : wait());
}

// wait looks again for the first minute.
function wait() {
  const timer = setInterval(() => document.hidden || refresh("#past"), 15_000);
  return { panel: null, stop: () => clearInterval(timer) };
}

function open(panel) {
  const state = panel.querySelector("[data-live-state]");
  const charts = [...panel.querySelectorAll("[data-chart]")].map((figure) => ({ figure, key: figure.dataset.chart, plot: null }));
  const control = new AbortController();
  let window = [0, 1];

  async function load() {
    if (document.hidden) return;
    try {
      const response = await fetch(panel.dataset.past, { signal: control.signal });
      if (!response.ok) throw new Error(response.statusText);
      const history = await response.json();
      window = [Date.parse(history.from) / 1000, Date.parse(history.to) / 1000];
      for (const chart of charts) draw(chart, history);
      state.textContent = "";
    } catch {
      if (!control.signal.aborted) state.textContent = "The portal did not answer; these may be old.";
    }
  }

  function draw(chart, history) {
    const left = chart.figure.querySelector("[data-left]").textContent;
    chart.plot ??= plot(chart.figure, {
      lines: [() => ({ width: 0 }), () => ({ width: 0 }), () => ({})],
      bands: [[1, 2]],
      range: () => window,
      rest: () => left,
      hover: (u, i) => `${moment(u.data[0][i], history.range)}: ${said(u.data[3][i], u.data[2][i], u.data[1][i])}`,
    });
    chart.plot.show(columns(history, chart.key));
  }

  load();
  const timer = setInterval(load, Number(panel.dataset.step) * 1000);
  return {
    panel,
    stop: () => {
      clearInterval(timer);
      control.abort();
      for (const chart of charts) chart.plot?.stop();
    },
  };
}

// columns are times, highest, lowest and mean, with a null where a step is missing.
function columns(history, key) {
  const out = [[], [], [], []];
  const add = (time, figures) => [time, figures?.max, figures?.min, figures?.mean].forEach((v, i) => out[i].push(v ?? null));
  for (const point of history.points) {
    const time = Date.parse(point.at) / 1000 + history.step_seconds / 2;
    if (time - out[0].at(-1) > history.step_seconds * 1.5) add(out[0].at(-1) + history.step_seconds, null);
    add(time, point[key]);
  }
  return out;
}

function moment(seconds, range) {
  const clock = { hour: "2-digit", minute: "2-digit" };
  return new Date(seconds * 1000).toLocaleString(undefined, range === "1h" ? clock : { day: "numeric", month: "short", ...clock });
}

function said(mean, low, high) {
  return mean === null ? "not measured" : `${number(mean)} (${number(low)}–${number(high)})`;
}
