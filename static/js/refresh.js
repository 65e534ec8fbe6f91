// Draws parts of the page anew from the portal: fetches the page, and changes only
// what differs. What the user has in hand stays: focus, typed text, ticked boxes,
// opened details and dialogs, whatever is marked
// data-keep, and what was shown once (data-once), which no other page has.
let running = null;

// refresh brings the parts matching selector up to date with the page at url: by
// itself the page's own, which is not the address shown when a POST has drawn it.
// Parts are matched by their id. It resolves to false when the portal did not
// give the page, and leaves everything as it is.
export async function refresh(selector, url = document.body.dataset.liveUrl ?? location.href) {
  running?.abort();
  const control = (running = new AbortController());
  let fresh;
  try {
    const response = await fetch(url, { signal: control.signal, headers: { Accept: "text/html" } });
    if (response.redirected && new URL(response.url).pathname === "/login") {
      location.reload(); // signed out elsewhere: let the portal say so
      return false;
    }
    if (!response.ok) return false;
    fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  } catch {
    return false;
  } finally {
    if (running === control) running = null;
  }
  if (control.signal.aborted) return false;
  if (new URL(url, location).href === location.href && otherScripts(fresh) && ![...document.querySelectorAll("input, textarea, select")].some(touched)) {
    location.reload(); // such as the terminal, once its instance runs: scripts come with a page, not with its parts
    return false;
  }
  const parts = [];
  for (const part of document.querySelectorAll(selector)) {
    const next = part.id && fresh.getElementById(part.id);
    if (!next) continue;
    Idiomorph.morph(part, next, morphing);
    parts.push(part);
  }
  document.dispatchEvent(new CustomEvent("berth:refreshed", { detail: parts }));
  return true;
}

const morphing = {
  ignoreActiveValue: true,
  callbacks: {
    beforeNodeMorphed: (old) => !(old instanceof Element && (old.hasAttribute("data-keep") || touched(old))),
    beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details"),
  },
};

// otherScripts says whether the page now needs a script that this one has not loaded.
function otherScripts(fresh) {
  const loaded = new Set([...document.scripts].map((s) => s.getAttribute("src")));
  return [...fresh.scripts].some((s) => !loaded.has(s.getAttribute("src")));
}

// touched says whether the user has changed a field since the page was drawn.
function touched(node) {
  switch (node.localName) {
    case "input":
      return node.type === "checkbox" || node.type === "radio" ? node.checked !== node.defaultChecked : node.value !== node.defaultValue;
    case "textarea":
      return node.value !== node.defaultValue;
    case "select":
      return [...node.options].some((o) => o.selected !== o.defaultSelected);
  }
  return false;
}
