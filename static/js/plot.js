// Draws a small chart on a canvas in the place of the portal's drawing, in its
// colours. What was not measured is null and leaves a gap.

// plot makes a chart in a figure. lines are uPlot series after that of time, bands
// fill between two of them; range(min, max) is the span of time to show; hover(index)
// is what the left corner says of a point, rest() what it says otherwise.
export function plot(figure, { lines, bands = [], range, hover, rest }) {
  const drawn = figure.querySelector("svg");
  const place = document.createElement("div");
  place.className = "plot";
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", drawn.getAttribute("aria-label").replace(/, now .*/, ""));
  const height = Math.round(drawn.getBoundingClientRect().height) || 64;
  drawn.replaceWith(place);
  const top = Number(figure.dataset.top);
  const limit = Number(figure.dataset.limit);
  const corner = figure.querySelector("[data-left]");
  // The canvas takes its colours from the place's own, since a custom property
  // computes to light-dark(…) and not to a colour.
  const look = getComputedStyle(place);
  let hovered = false;
  const made = new uPlot(
    {
      width: place.clientWidth,
      height,
      padding: [4, 0, 4, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
      scales: {
        x: { time: true, range: (u, min, max) => range(min, max) },
        y: { range: (u, min, max) => [0, Math.max(top, max ?? 0)] },
      },
      axes: [{ show: false }, { show: false }],
      series: [{}, ...lines.map((l) => ({ stroke: () => look.color, width: 1.75, spanGaps: false, points: { show: false }, ...l(look) }))],
      bands: bands.map((series) => ({ series, fill: () => look.borderTopColor })),
      hooks: {
        drawClear: [
          (u) => {
            for (const at of [0, 0.5, 1]) rule(u, u.scales.y.max * at, look.outlineColor, []);
            if (limit > 0) rule(u, limit, look.columnRuleColor, [3, 3]);
          },
        ],
        setCursor: [
          (u) => {
            hovered = (u.cursor.idx ?? null) !== null;
            corner.textContent = hovered ? hover(u, u.cursor.idx) : rest();
          },
        ],
      },
    },
    [[], ...lines.map(() => [])],
    place,
  );
  const size = new ResizeObserver(() => made.setSize({ width: place.clientWidth, height }));
  size.observe(place);
  const repaint = () => made.redraw();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.addEventListener("berth:theme", repaint);
  dark.addEventListener("change", repaint);
  return {
    show: (data) => {
      if (!hovered) corner.textContent = rest();
      made.setData(data);
    },
    stop: () => {
      document.removeEventListener("berth:theme", repaint);
      dark.removeEventListener("change", repaint);
      size.disconnect();
      made.destroy();
    },
  };
}

export function number(v) {
  return (Math.round(v * 10) / 10).toLocaleString("en", { maximumFractionDigits: v < 1000 ? 1 : 0 });
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
