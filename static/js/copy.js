// Copy buttons: the text is that of the code beside the button.
import { say } from "./say.js";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  const code = button?.parentElement.querySelector("code");
  if (!code) return;
  try {
    await navigator.clipboard.writeText(code.textContent);
    say("Copied.");
    button.dataset.copied = "yes";
    setTimeout(() => delete button.dataset.copied, 2000);
  } catch {
    // No permission (plain http to another host): select it, so that one key copies it.
    getSelection().selectAllChildren(code);
    say("Selected. Press Ctrl and C to copy.");
  }
});
