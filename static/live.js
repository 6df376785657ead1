// Updates the figures of connected apps while the page is in front. Without this script, they are those of the load.
"use strict";

(() => {
  const status = document.querySelector("[data-live]");
  if (!status || !window.EventSource) return;
  const FIRST = 1000, LONGEST = 120000; // milliseconds between two attempts
  const cards = new Map([...document.querySelectorAll("[data-app]")].map((card) => [card.dataset.app, card]));
  let source = null, timer = 0, wait = FIRST, changed = false;

  // A status is read aloud, so it changes only when what it says does. The figures are not read aloud.
  function say(name) {
    const text = status.dataset[changed ? "changed" : name];
    if (status.textContent !== text) status.textContent = text;
  }

  const put = (element, text) => {
    if (element && element.textContent !== text) element.textContent = text;
  };

  function show(card, app) {
    if (app.paused !== ("paused" in card.dataset)) changed = true;
    put(card.querySelector("[data-doing]"), app.doing);
    put(card.querySelector("[data-spent] strong"), app.spent);
    for (const [name, budget] of Object.entries(app.budgets)) {
      put(card.querySelector(`[data-used="${name}"] strong`), budget.used);
      const bar = card.querySelector(`[data-bar="${name}"]`);
      if (!bar) continue;
      bar.setAttribute("aria-label", budget.label);
      bar.querySelector(".part").setAttribute("width", `${budget.share}%`);
    }
  }

  function take(event) {
    const { apps, all } = JSON.parse(event.data);
    wait = FIRST;
    for (const [id, app] of Object.entries(apps)) {
      if (cards.has(id)) show(cards.get(id), app);
    }
    if (all) {
      const now = new Set(all);
      if ([...cards.keys()].some((id) => !now.has(id))) changed = true;
      if ("whole" in status.dataset && all.some((id) => !cards.has(id))) changed = true;
    }
    say("on");
  }

  function leave() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  function again() {
    leave();
    say("off");
    timer = setTimeout(begin, wait * (0.5 + Math.random()));
    wait = Math.min(LONGEST, wait * 2);
  }

  function begin() {
    leave();
    if (document.hidden) return;
    source = new EventSource(status.dataset.live);
    source.addEventListener("apps", take);
    source.addEventListener("end", again);
    source.addEventListener("error", again);
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : begin()));
  window.addEventListener("pagehide", leave);
  window.addEventListener("pageshow", (event) => event.persisted && begin());
  begin();
})();
