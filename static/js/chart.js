// The live charts of an instance, a card or a node. The portal has drawn the last
// minutes as SVG; on the first sample a canvas takes each drawing's place. The
// window opens with what there is to see.
import { keepOpen } from "./socket.js";
import { number, plot } from "./plot.js";

const spans = [60, 120, 300, 600]; // s across, as the portal draws it, up to all that is kept
const gap = 2; // s without a sample: the line ends there
let connection = null; // { panel, stop } of the panel now on the page

start();
document.addEventListener("berth:refreshed", start);

// start opens the stream when the page has charts, and ends it when they are gone.
function start() {
  const panel = document.querySelector("[data-live-charts]");
  if (connection && connection.panel === panel) return;
  connection?.stop();
  connection = panel ? open(panel) : null;
}

function open(panel) {
  const state = panel.querySelector("[data-live-state]");
  const keep = Number(panel.dataset.window);
  const charts = [...panel.querySelectorAll("[data-chart]")].map((figure) => ({ figure, key: figure.dataset.chart, values: [], plot: null }));
  const times = [];
  let seq = 0;
  let frame = 0;

  const add = (time, sample) => {
    times.push(time);
    for (const chart of charts) chart.values.push(sample?.[chart.key] ?? null);
  };
  const socket = keepOpen(() => `${panel.dataset.liveCharts}?after=${seq}`, {
    open: () => (state.textContent = ""),
    message: (event) => {
      const sample = JSON.parse(event.data);
      if (sample.seq <= seq) return; // sent again after a reconnect
      seq = sample.seq;
      const time = Date.parse(sample.at) / 1000;
      if (time - times.at(-1) > gap) add(times.at(-1) + 1, null);
      add(time, sample);
      const old = times.findIndex((t) => t >= time - keep);
      if (old > 0) {
        times.splice(0, old);
        for (const chart of charts) chart.values.splice(0, old);
      }
      // What comes in a burst is drawn once.
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        for (const chart of charts) draw(chart, times, keep);
      });
    },
    down: (seconds) => (state.textContent = `reconnecting in ${seconds} s…`),
    refused: (reason) => (state.textContent = reason || "ended"),
  });

  return {
    panel,
    stop: () => {
      socket.stop();
      cancelAnimationFrame(frame);
      for (const chart of charts) chart.plot?.stop();
    },
  };
}

function draw(chart, times, keep) {
  const now = chart.values.at(-1);
  chart.figure.querySelector("[data-now]").textContent = now === null ? "not measurable" : number(now);
  chart.figure.querySelector("[data-unit]").hidden = now === null;
  const peak = chart.figure.querySelector("[data-peak]");
  if (peak) peak.textContent = peakOf(chart.values);
  chart.span = spans.find((s) => s < keep && s >= times.at(-1) - times[0]) ?? keep;
  chart.plot ??= plot(chart.figure, {
    lines: [(look) => ({ fill: () => look.borderTopColor })],
    range: (min, max) => [max - chart.span, max],
    rest: () => `−${chart.span / 60} min`,
    hover: (u, i) => `${new Date(u.data[0][i] * 1000).toLocaleTimeString()}: ${u.data[1][i] === null ? "not measured" : number(u.data[1][i])}`,
  });
  chart.plot.show([times, chart.values]);
}

function peakOf(values) {
  const measured = values.filter((v) => v !== null);
  return measured.length ? number(Math.max(...measured)) : "–";
}
