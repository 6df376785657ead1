// Shows the numbers of the day under the pointer. Without this script the browser's own tooltips and the table do.
"use strict";

for (const chart of document.querySelectorAll("[data-chart]")) {
  const area = chart.querySelector(".chart-area");
  const reach = area.querySelector(".reach");
  const read = chart.nextElementSibling;
  // Our line of text replaces the tooltips.
  const texts = [...area.querySelectorAll("g > title")].map((title) => (title.remove(), title.textContent));
  const idle = () => {
    read.textContent = read.dataset.idle;
    reach.setAttribute("width", "0");
  };

  idle();
  read.hidden = false;
  area.addEventListener("pointermove", (event) => {
    const box = area.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * texts.length);
    const place = Math.min(Math.max(at, 0), texts.length - 1);
    read.textContent = texts[place];
    reach.setAttribute("x", `${(100 * place) / texts.length}%`);
    reach.setAttribute("width", `${100 / texts.length}%`);
  });
  area.addEventListener("pointerleave", idle);
}
