// Says a short text to screen readers through the page's live region.
export function say(text) {
  const region = document.getElementById("say");
  if (region) region.textContent = text;
}
