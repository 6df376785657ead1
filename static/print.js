// Shows the button that prints the page. Without scripts, people print with their browser's own command.
"use strict";
for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}
