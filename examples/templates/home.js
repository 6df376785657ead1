"use strict";
// Comfort only: without this the forms do the same, a page at a time.

const at = (id) => document.getElementById(id);

// The server tells of a changed balance and of the end of the access.
const events = new EventSource("/events");
events.addEventListener("balance", (event) => {
  if (at("balance")) at("balance").textContent = JSON.parse(event.data);
});
events.addEventListener("ended", (event) => ended(JSON.parse(event.data)));

function ended(words) {
  events.close();
  for (const part of document.querySelectorAll("[data-needs-access]")) part.hidden = true;
  for (const part of document.querySelectorAll("[data-after-end]")) {
    part.hidden = false;
    part.closest("li").className = "done";
  }
  const again = document.createElement("a");
  again.href = "/login";
  again.textContent = "Sign in again";
  at("ended").hidden = false;
  at("ended").replaceChildren(words + " ", again);
}

// The answer of a model, as it arrives.
const form = at("ask");
if (form) form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  const asked = new URLSearchParams(new FormData(form));
  const line = (kind, words) => {
    const made = document.createElement(kind === "question" ? "strong" : "p");
    made.className = kind;
    made.textContent = words;
    box.append(made);
    return made;
  };
  const box = document.createElement("div");
  box.className = "answer";
  line("question", asked.get("question"));
  at("answer").replaceChildren(box);
  const reply = line("reply", "");
  button.disabled = true;
  try {
    const response = await fetch("/ask/stream", { method: "POST", body: asked });
    if (!response.ok) throw new Error(String(response.status));
    const lines = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let piece = await lines.read(); !piece.done; piece = await lines.read()) {
      const arrived = (rest + piece.value).split("\n");
      rest = arrived.pop();
      for (const said of arrived.map((text) => JSON.parse(text))) {
        if (said.text) reply.append(said.text);
        if (said.trouble) line("error", said.trouble);
        if (said.charged) line("price", `It cost you ${said.charged}${said.remaining && `; ${said.remaining} left`}.`);
        if (said.ended) ended(said.trouble);
      }
    }
    form.reset();
  } catch (error) {
    line("error", "The answer was cut off. Reload the page and ask again.");
  } finally {
    button.disabled = false;
  }
});
