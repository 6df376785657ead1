// Passkeys: asks the browser for one and puts its answer into the form that is sent. Without this script the forms stay
// hidden, and everything else on the page works.
"use strict";

(() => {
  const toBytes = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
  const toText = (buffer) => {
    let raw = "";
    for (const byte of new Uint8Array(buffer)) raw += String.fromCharCode(byte);
    return btoa(raw).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  };
  const described = (list) => (list || []).map((one) => ({ ...one, id: toBytes(one.id) }));

  // Which text of the form says what went wrong, by the browser's error or the server's.
  const WORDS = {
    InvalidStateError: "already",
    NotAllowedError: "unused",
    NotSupportedError: "unable",
    SecurityError: "elsewhere",
    rate_limited: "late",
    access_denied: "out",
    login_required: "out",
  };

  async function optionsOf(form) {
    const response = await fetch(form.dataset.options, {
      method: "POST",
      headers: { Accept: "application/json" },
      body: new URLSearchParams({ _xsrf: form.elements._xsrf.value }),
    });
    const answer = await response.json();
    if (!response.ok) throw Object.assign(new Error(answer.error_description), { name: answer.error });
    return answer.publicKey;
  }

  async function make(options) {
    const publicKey = {
      ...options,
      challenge: toBytes(options.challenge),
      user: { ...options.user, id: toBytes(options.user.id) },
      excludeCredentials: described(options.excludeCredentials),
    };
    const made = await navigator.credentials.create({ publicKey });
    return {
      id: made.id,
      rawId: toText(made.rawId),
      type: made.type,
      response: {
        clientDataJSON: toText(made.response.clientDataJSON),
        attestationObject: toText(made.response.attestationObject),
        transports: made.response.getTransports ? made.response.getTransports() : [],
      },
    };
  }

  async function use(options, manner) {
    const publicKey = {
      ...options,
      challenge: toBytes(options.challenge),
      allowCredentials: described(options.allowCredentials),
    };
    const used = await navigator.credentials.get({ publicKey, ...manner });
    const handle = used.response.userHandle;
    return {
      id: used.id,
      rawId: toText(used.rawId),
      type: used.type,
      response: {
        clientDataJSON: toText(used.response.clientDataJSON),
        authenticatorData: toText(used.response.authenticatorData),
        signature: toText(used.response.signature),
        userHandle: handle && handle.byteLength ? toText(handle) : null,
      },
    };
  }

  if (!window.PublicKeyCredential) return;

  function send(form, answer) {
    const box = document.querySelector("[type=checkbox][name=keep]");
    if (box && form.elements.keep) form.elements.keep.value = box.checked ? "1" : "";
    form.elements.credential.value = JSON.stringify(answer);
    form.submit();
  }

  // Offers passkeys in the address field, until a click, another tab or a newer offer ends the wait. The server's
  // challenge is good for five minutes and one tab, so the tab in front asks for a new one in time.
  const RENEWED = 4 * 60 * 1000;
  let offer = new AbortController();
  async function offerIn(form) {
    offer.abort();
    const { signal } = (offer = new AbortController());
    if (document.visibilityState !== "visible") return;
    try {
      const options = await optionsOf(form);
      if (!signal.aborted) send(form, await use(options, { mediation: "conditional", signal }));
    } catch {
      // Nobody asked for this passkey: the form and the button still work.
    }
  }
  async function autofill(form) {
    const able = window.PublicKeyCredential.isConditionalMediationAvailable;
    if (!able || !(await able.call(window.PublicKeyCredential))) return;
    document.addEventListener("visibilitychange", () => offerIn(form));
    window.addEventListener("pageshow", (event) => event.persisted && offerIn(form));
    setInterval(() => offerIn(form), RENEWED);
    offerIn(form);
  }

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const alert = form.querySelector("[role=alert]");
    const button = form.querySelector("button");
    form.hidden = false;
    window.addEventListener("pageshow", () => (button.disabled = false)); // going back to a page as it was left
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      alert.hidden = true;
      button.disabled = true;
      offer.abort(); // the browser waits for one passkey at a time
      try {
        const options = await optionsOf(form);
        const answer = await (form.dataset.passkey === "create" ? make(options) : use(options));
        send(form, answer);
      } catch (error) {
        alert.textContent = form.querySelector(`[data-word=${WORDS[error.name] || "failed"}]`).textContent;
        alert.hidden = false;
        button.disabled = false;
        if ("autofill" in form.dataset) offerIn(form);
      }
    });
    if ("autofill" in form.dataset) autofill(form);
  }
})();
