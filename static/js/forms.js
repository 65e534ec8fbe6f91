// A form is sent once: the button shows that it is under way, and a second click
// does nothing. Toasts can be closed; lists can be selected whole.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  event.submitter?.setAttribute("aria-busy", "true");
});

// Coming back by the history shows the page as it was left.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    for (const b of form.querySelectorAll("[aria-busy]")) b.removeAttribute("aria-busy");
  }
});

document.addEventListener("click", (event) => {
  event.target.closest("[data-close]")?.closest(".toast").remove();
});

document.addEventListener("change", (event) => {
  const box = event.target;
  const form = box.closest("form");
  if (!form) return;
  if (box.matches("[data-select-all]")) {
    for (const b of form.querySelectorAll("input[name=ids]")) b.checked = box.checked;
  }
  if (box.matches("[data-select-all], input[name=ids]")) count(form);
});

document.addEventListener("berth:refreshed", () => document.querySelectorAll("form:has([data-selected])").forEach(count));

function count(form) {
  const all = [...form.querySelectorAll("input[name=ids]")];
  const chosen = all.filter((b) => b.checked).length;
  for (const out of form.querySelectorAll("[data-selected]")) out.textContent = `${chosen} selected`;
  const head = form.querySelector("[data-select-all]");
  if (head) {
    head.checked = chosen > 0 && chosen === all.length;
    head.indeterminate = chosen > 0 && chosen < all.length;
  }
}
