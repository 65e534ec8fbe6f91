// The theme switch works by itself as a form; with script the page need not load again.
for (const form of document.querySelectorAll("form[data-theme-form]")) {
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button || button.name !== "theme") return;
    event.preventDefault();
    show(form, button.value);
    const answer = new URLSearchParams(new FormData(form, button));
    fetch(form.action, { method: "POST", body: answer, redirect: "manual" }).catch(() => {
      // Offline: the choice holds for this page, and the next click tries again.
    });
  });
}

function show(form, theme) {
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  for (const b of form.querySelectorAll("button")) b.setAttribute("aria-pressed", String(b.value === theme));
  document.dispatchEvent(new Event("berth:theme"));
}
