// Counts durations and costs up between two views, from numbers the meter has
// confirmed. The portal's clock is used throughout: an element says what its
// numbers were when the page was drawn, and only the time since then is added.
let seen = new WeakMap(); // element -> performance.now() when its numbers were new

document.addEventListener("berth:refreshed", (event) => {
  for (const part of event.detail) {
    for (const e of part.querySelectorAll("[data-count], [data-rate]")) seen.delete(e);
  }
  tick();
});
tick();
setInterval(tick, 1000);

function tick() {
  const now = performance.now();
  for (const e of document.querySelectorAll("[data-count]")) {
    e.textContent = duration(Number(e.dataset.count) + passed(e, now));
  }
  for (const e of document.querySelectorAll("[data-rate]")) {
    const micros = Number(e.dataset.charged) + Math.floor((Number(e.dataset.rate) * passed(e, now)) / 3600);
    draw(e, micros);
  }
}

// passed is the whole seconds since the element's numbers held.
function passed(e, now) {
  if (!seen.has(e)) seen.set(e, now);
  return Math.floor((now - seen.get(e) + Number(e.dataset.age ?? 0)) / 1000);
}

// draw shows an amount with the currency's own digits, and two more, faint.
function draw(e, micros) {
  const own = Number(e.dataset.decimals);
  const digits = String(Math.floor(micros / 10 ** (4 - own))).padStart(own + 3, "0");
  const split = digits.length - 2 - own;
  const whole = digits.slice(0, split).replace(/\B(?=(\d{3})+$)/g, ",");
  const cents = own > 0 ? "." + digits.slice(split, -2) : "";
  e.querySelector("[data-whole]").textContent = e.dataset.symbol + whole + cents;
  e.querySelector("[data-faint]").textContent = (own > 0 ? "" : ".") + digits.slice(-2);
}

// duration is "7 s", "3 min 07 s", "2 h 14 min 07 s", "1 d 19 h 02 min".
export function duration(seconds) {
  const two = (n) => String(n).padStart(2, "0");
  const s = seconds % 60;
  const min = Math.floor(seconds / 60) % 60;
  const h = Math.floor(seconds / 3600) % 24;
  const d = Math.floor(seconds / 86400);
  if (d > 0) return `${d} d ${h} h ${two(min)} min`;
  if (h > 0) return `${h} h ${two(min)} min ${two(s)} s`;
  if (min > 0) return `${min} min ${two(s)} s`;
  return `${s} s`;
}
