// Adds a button to each value that people copy. Without this script one click selects the whole value.
"use strict";

const { idle, done, failed } = document.currentScript.dataset;
const SHOWN_MS = 2000;

// Only secure contexts have a clipboard.
if (navigator.clipboard?.writeText) {
  const status = document.createElement("p");
  status.className = "unseen";
  status.setAttribute("role", "status");
  document.body.append(status);
  for (const value of document.querySelectorAll("[data-copy]")) value.after(buttonFor(value, status));
}

function buttonFor(value, status) {
  const button = document.createElement("button");
  let timer = 0;
  const say = (text) => {
    button.textContent = status.textContent = text;
    clearTimeout(timer);
    timer = setTimeout(() => {
      button.textContent = idle;
      status.textContent = "";
    }, SHOWN_MS);
  };

  button.type = "button";
  button.className = "quiet copy";
  button.textContent = idle;
  button.setAttribute("aria-label", value.dataset.copy);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(value.textContent);
      say(done);
    } catch {
      say(failed);
    }
  });
  return button;
}
