// Brings price, place and wallet up to date while the form is filled in. Only the
// choices that price them go into the address; names, variables and scripts do not.
import { refresh } from "./refresh.js";
import { say } from "./say.js";

const priced = ["sku", "image", "disk_gib"];
const form = document.querySelector("form[data-launch]");
let timer = 0;

form?.addEventListener("input", (event) => {
  if (!priced.includes(event.target.name)) return;
  clearTimeout(timer);
  timer = setTimeout(update, event.target.type === "radio" ? 0 : 350);
});

// A form drawn again by a POST has the choices in its fields, not in the address.
if (form) address();

function address() {
  const url = new URL(form.dataset.launch, location.href);
  const data = new FormData(form);
  for (const name of priced) {
    const value = data.get(name);
    if (value) url.searchParams.set(name, value);
  }
  document.body.dataset.liveUrl = url.pathname + url.search;
  return url;
}

async function update() {
  const url = address();
  history.replaceState(null, "", url);
  const parts = document.querySelectorAll("[data-price]");
  for (const part of parts) part.setAttribute("aria-busy", "true");
  const done = await refresh("[data-price]", url);
  for (const part of parts) part.removeAttribute("aria-busy");
  if (done) say(document.querySelector("[data-price-text]")?.textContent ?? "");
}
