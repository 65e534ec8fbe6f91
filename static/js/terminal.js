// The web terminal: keys go out as bytes, output comes in as bytes, and the size
// as JSON text. After a lost connection the same shell goes on: the portal first
// replays what it showed last, so the screen is cleared before.
import { keepOpen } from "./socket.js";
import { say } from "./say.js";

const place = document.querySelector("[data-terminal]");
if (place) open(place);

function open(place) {
  const state = document.querySelector("[data-terminal-state]");
  const term = new Terminal({
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    fontFamily: getComputedStyle(place).fontFamily,
    fontSize: 14,
    scrollback: 10_000,
    theme: colours(place),
  });
  const fit = new FitAddon.FitAddon();
  term.loadAddon(fit);
  term.open(place);
  term.textarea.setAttribute("aria-label", "Terminal");

  const encode = new TextEncoder();
  let socket = null;
  let ended = false;

  function connect() {
    ended = false;
    show("starting", "Connecting…");
    socket = keepOpen(() => place.dataset.terminal, {
      open: () => {
        term.reset();
        show("running", "Connected");
        resize();
      },
      message: (event) => {
        term.write(typeof event.data === "string" ? event.data : new Uint8Array(event.data));
      },
      down: (seconds) => show("warn", `Connection lost. Reconnecting in ${seconds} s, the shell goes on.`),
      refused: (reason) => {
        ended = true;
        show("stopped", `${reason || "The shell has ended."} Press Enter to open a new one.`);
      },
    });
  }

  function show(tone, text) {
    state.dataset.s = tone;
    state.textContent = text;
    say(text);
  }

  function resize() {
    fit.fit();
    socket?.send(JSON.stringify({ resize: { cols: term.cols, rows: term.rows } }));
  }

  term.onData((text) => {
    if (!ended) socket.send(encode.encode(text));
    else if (text === "\r") connect();
  });
  // Mouse reports of some programs are bytes that are not valid text.
  term.onBinary((text) => socket.send(Uint8Array.from(text, (c) => c.charCodeAt(0))));

  let timer = 0;
  new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(resize, 100);
  }).observe(place);

  const repaint = () => (term.options.theme = colours(place));
  document.addEventListener("berth:theme", repaint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

  fit.fit();
  term.focus();
  connect();
  addEventListener("pagehide", () => socket.stop());
}

function colours(place) {
  const look = getComputedStyle(place);
  return {
    background: look.backgroundColor,
    foreground: look.color,
    cursor: look.borderTopColor,
    cursorAccent: look.backgroundColor,
    selectionBackground: look.outlineColor,
  };
}
