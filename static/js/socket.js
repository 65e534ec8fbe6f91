// A WebSocket that comes back by itself: full jitter, doubling up to 30 s.
const slowest = 30_000;

// keepOpen connects to the address that address() gives at each attempt, and calls
//   on.open(socket), on.message(event), on.down(seconds until the next attempt),
//   on.refused(reason) when the portal says not to come back (close code 1000 or 1008).
// It returns a handle with send(data), which drops data while down, and stop().
export function keepOpen(address, on) {
  let socket = null;
  let attempts = 0;
  let timer = 0;
  let stopped = false;

  function connect() {
    const url = new URL(address(), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => on.open(socket);
    socket.onmessage = (event) => {
      attempts = 0; // it works: an open alone may be a proxy's
      on.message(event);
    };
    socket.onclose = (event) => {
      if (stopped) return;
      if (event.code === 1000 || event.code === 1008) {
        on.refused(event.reason);
        return;
      }
      const wait = Math.random() * Math.min(slowest, 500 * 2 ** attempts++);
      on.down(Math.ceil(wait / 1000));
      timer = setTimeout(connect, wait);
    };
  }

  // Back online or back in view: do not wait for the timer.
  function hurry() {
    if (stopped || document.hidden || socket?.readyState !== WebSocket.CLOSED || !timer) return;
    clearTimeout(timer);
    timer = 0;
    connect();
  }
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);

  connect();
  return {
    send: (data) => socket.readyState === WebSocket.OPEN && socket.send(data),
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      removeEventListener("online", hurry);
      document.removeEventListener("visibilitychange", hurry);
      socket.close();
    },
  };
}
