// Another site's page can cover this one, or swap it in, between the two clicks of a double click: the second click
// would press a button that nobody has read. So a button with data-unhurried ignores clicks until its page has been in
// front for a moment, and until quick clicking has stopped. Without this script the button works at once. The script
// is not deferred, so it runs before there is a button to press.
"use strict";

(() => {
  const MOMENT = 700; // milliseconds; systems count clicks up to 500 apart as one double click
  const buttons = () => document.querySelectorAll("[data-unhurried]");
  let ready = 0, timer;

  function wait() {
    ready = performance.now() + MOMENT;
    for (const button of buttons()) {
      button.setAttribute("aria-disabled", "true");
      for (const line of button.getAnimations({ subtree: true })) line.currentTime = 0;
    }
    clearTimeout(timer);
    timer = setTimeout(() => {
      for (const button of buttons()) button.removeAttribute("aria-disabled");
    }, MOMENT);
  }

  function stop(event) {
    if (performance.now() >= ready || !event.target.closest("[data-unhurried]")) return;
    event.preventDefault();
    event.stopPropagation();
    wait();
  }

  document.addEventListener("click", stop, true);
  document.addEventListener("DOMContentLoaded", wait);
  document.addEventListener("visibilitychange", wait);
  for (const name of ["pageshow", "focus", "hashchange"]) window.addEventListener(name, wait);
  wait();
})();
