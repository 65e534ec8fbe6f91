// The live charts of an instance. The portal has drawn the last minutes as SVG; on
// the first sample a canvas takes each drawing's place. A reading that was not
// measured is null and leaves a gap. The window opens with what there is to see.
import { keepOpen } from "./socket.js";

const spans = [60, 120, 300, 600]; // s across, as the portal draws it, up to all that is kept
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

  const socket = keepOpen(() => `${panel.dataset.liveCharts}?after=${seq}`, {
    open: () => (state.textContent = ""),
    message: (event) => {
      const sample = JSON.parse(event.data);
      if (sample.seq <= seq) return; // sent again after a reconnect
      seq = sample.seq;
      times.push(Date.parse(sample.at) / 1000);
      for (const chart of charts) chart.values.push(sample[chart.key] ?? null);
      const old = times.findIndex((t) => t >= times.at(-1) - keep);
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

  const repaint = () => charts.forEach((c) => c.plot?.redraw());
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.addEventListener("berth:theme", repaint);
  dark.addEventListener("change", repaint);

  return {
    panel,
    stop: () => {
      socket.stop();
      cancelAnimationFrame(frame);
      document.removeEventListener("berth:theme", repaint);
      dark.removeEventListener("change", repaint);
      for (const chart of charts) {
        chart.size?.disconnect();
        chart.plot?.destroy();
      }
    },
  };
}

function draw(chart, times, keep) {
  const now = chart.values.at(-1);
  const text = now === null ? "not measurable" : number(now);
  chart.figure.querySelector("[data-now]").textContent = text;
  chart.figure.querySelector("[data-unit]").hidden = now === null;
  const peak = chart.figure.querySelector("[data-peak]");
  if (peak) peak.textContent = peakOf(chart.values);
  chart.span = spans.find((s) => s < keep && s >= times.at(-1) - times[0]) ?? keep;
  chart.plot ??= plot(chart);
  if (!chart.hovered) chart.figure.querySelector("[data-left]").textContent = left(chart);
  chart.plot.setData([times, chart.values]);
}

function left(chart) {
  return `−${chart.span / 60} min`;
}

function peakOf(values) {
  const measured = values.filter((v) => v !== null);
  return measured.length ? number(Math.max(...measured)) : "–";
}

function number(v) {
  return (Math.round(v * 10) / 10).toLocaleString("en", { maximumFractionDigits: v < 1000 ? 1 : 0 });
}

function plot(chart) {
  const place = document.createElement("div");
  place.className = "plot";
  const drawn = chart.figure.querySelector("svg");
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", drawn.getAttribute("aria-label").replace(/, now .*/, ""));
  const height = Math.round(drawn.getBoundingClientRect().height) || 64;
  drawn.replaceWith(place);
  const top = Number(chart.figure.dataset.top);
  const limit = Number(chart.figure.dataset.limit);
  const corner = chart.figure.querySelector("[data-left]");
  // The canvas takes its colours from the place's own, since a custom property
  // computes to light-dark(…) and not to a colour.
  const look = getComputedStyle(place);
  const options = {
    width: place.clientWidth,
    height,
    padding: [4, 0, 4, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: (u, min, max) => [max - chart.span, max] },
      y: { range: (u, min, max) => [0, Math.max(top, max ?? 0)] },
    },
    axes: [{ show: false }, { show: false }],
    series: [{}, { stroke: () => look.color, fill: () => look.borderTopColor, width: 1.75, spanGaps: false, points: { show: false } }],
    hooks: {
      drawClear: [
        (u) => {
          for (const at of [0, 0.5, 1]) rule(u, u.scales.y.max * at, look.outlineColor, []);
          if (limit > 0) rule(u, limit, look.columnRuleColor, [3, 3]);
        },
      ],
      setCursor: [
        (u) => {
          const i = u.cursor.idx;
          const v = i === null || i === undefined ? undefined : u.data[1][i];
          chart.hovered = v !== undefined;
          corner.textContent = !chart.hovered ? left(chart) : `${new Date(u.data[0][i] * 1000).toLocaleTimeString()}: ${v === null ? "not measured" : number(v)}`;
        },
      ],
    },
  };
  const made = new uPlot(options, [[], []], place);
  chart.size = new ResizeObserver(() => made.setSize({ width: place.clientWidth, height }));
  chart.size.observe(place);
  return made;
}

// rule draws a horizontal line at a value.
function rule(u, value, colour, dash) {
  const y = Math.round(u.valToPos(value, "y", true)) + 0.5;
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(dash.map((d) => d * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}
