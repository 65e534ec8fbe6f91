// The newest readings of cards, as they come: one socket for all cards of the page.
// What comes within a frame is drawn once.
import { keepOpen } from "./socket.js";
import { number } from "./plot.js";

const panel = document.querySelector("[data-live-cards]");
const waiting = new Map(); // UUID, or its last 12 characters -> its newest sample
let frame = 0;

if (panel) {
  keepOpen(() => panel.dataset.liveCards, {
    open: () => {},
    message: (event) => {
      for (const sample of JSON.parse(event.data)) waiting.set(sample.id, sample).set(sample.id.slice(-12), sample);
      frame ||= requestAnimationFrame(draw);
    },
    down: () => {},
    refused: () => {},
  });
}

function draw() {
  frame = 0;
  for (const card of document.querySelectorAll("[data-card]")) {
    const sample = waiting.get(card.dataset.card);
    if (!sample) continue;
    for (const place of card.querySelectorAll("[data-reading]")) {
      const v = sample[place.dataset.reading];
      const text = v === null ? place.dataset.none ?? "not measurable" : number(v) + place.dataset.unit;
      if (place.textContent !== text) place.textContent = text;
    }
  }
  waiting.clear();
}
