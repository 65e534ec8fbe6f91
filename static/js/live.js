// Keeps signed-in pages fresh: the portal names what has changed, and the parts
// that declare that topic are drawn anew. One stream per visible page, since a
// browser has only a few connections to one host.
import { refresh } from "./refresh.js";

const quiet = 150; // ms: several changes at once are one refresh
const pause = 1000; // ms between two refreshes
const slowest = 30_000; // ms between two attempts to connect
const patience = 2000; // ms down before the page says so

let source = null;
let down = false;
let attempts = 0;
let retry = 0;
let word = 0;

const waiting = new Set();
let timer = 0;
let last = 0;

if (document.body.hasAttribute("data-live")) {
  connect();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    connect();
    everything();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    connect();
    everything();
  });
}

function connect() {
  if (source) return;
  clearTimeout(retry);
  source = new EventSource("/live");
  source.addEventListener("change", (event) => note(event.data));
  source.onopen = () => {
    attempts = 0;
    if (down) everything();
    show(false);
  };
  source.onerror = () => {
    show(true);
    // The browser itself tries again unless the answer was an error page.
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    const wait = Math.random() * Math.min(slowest, 1000 * 2 ** attempts++);
    retry = setTimeout(connect, wait);
  };
}

function close() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

// show says that the link is down, if it stays so: a blink is not worth a word.
function show(isDown) {
  if (isDown && down) return;
  down = isDown;
  clearTimeout(word);
  const state = document.getElementById("link-state");
  if (!isDown) state.hidden = true;
  else word = setTimeout(() => (state.hidden = false), patience);
}

function everything() {
  for (const part of document.querySelectorAll("[data-live-topic]")) topics(part).forEach(note);
}

function topics(part) {
  return part.dataset.liveTopic.split(" ").filter(Boolean);
}

function note(topic) {
  waiting.add(topic);
  if (timer) return;
  timer = setTimeout(run, Math.max(quiet, last + pause - performance.now()));
}

async function run() {
  const changed = [...waiting];
  waiting.clear();
  const concerned = [...document.querySelectorAll("[data-live-topic]")].filter((part) => part.id && topics(part).some((t) => changed.includes(t)));
  if (concerned.length > 0) await refresh(concerned.map((part) => "#" + CSS.escape(part.id)).join());
  last = performance.now();
  timer = 0;
  if (waiting.size > 0) note(waiting.values().next().value);
}
