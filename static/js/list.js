// Utilisation in the list of instances, as it changes: one socket for all that run.
import { keepOpen } from "./socket.js";

let connection = null; // { address, stop } of what is watched now

start();
document.addEventListener("berth:refreshed", start);

// start watches what runs on the page now.
function start() {
  const ids = [...document.querySelectorAll("[data-instance]")].map((row) => row.dataset.instance);
  const address = ids.length ? "/instances/live?" + new URLSearchParams(ids.map((id) => ["id", id])) : "";
  if (connection?.address === address) return;
  connection?.stop();
  connection = null;
  if (!address) return;
  const socket = keepOpen(() => address, {
    open: () => {},
    message: (event) => JSON.parse(event.data).forEach(show),
    down: () => {},
    refused: () => {},
  });
  connection = { address, stop: socket.stop };
}

function show(sample) {
  const cell = document.querySelector(`[data-instance="${CSS.escape(sample.id)}"] [data-utilization]`);
  if (cell) cell.textContent = sample.utilization_percent === null ? "–" : `${Math.round(sample.utilization_percent)} %`;
}
