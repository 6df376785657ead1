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

  async function use(options) {
    const publicKey = {
      ...options,
      challenge: toBytes(options.challenge),
      allowCredentials: described(options.allowCredentials),
    };
    const used = await navigator.credentials.get({ publicKey });
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
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const alert = form.querySelector("[role=alert]");
    const button = form.querySelector("button");
    form.hidden = false;
    window.addEventListener("pageshow", () => (button.disabled = false)); // going back to a page as it was left
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      alert.hidden = true;
      button.disabled = true;
      try {
        const options = await optionsOf(form);
        const answer = await (form.dataset.passkey === "create" ? make(options) : use(options));
        form.elements.credential.value = JSON.stringify(answer);
        form.submit();
      } catch (error) {
        alert.textContent = form.querySelector(`[data-word=${WORDS[error.name] || "failed"}]`).textContent;
        alert.hidden = false;
        button.disabled = false;
      }
    });
  }
})();
