// Keeps the browser's time zone in a cookie, so that pages show times in it. Without this script, times are in the zone
// that the person chose, else in UTC.
"use strict";

(() => {
  const { cookie } = document.currentScript.dataset;
  const keep = () => {
    const timeZone = window.Temporal?.Now.timeZoneId() ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
    const secure = location.protocol === "https:" ? "; secure" : "";
    if (timeZone) {
      document.cookie = `${cookie}=${timeZone}; path=/; max-age=31536000; samesite=lax${secure}`;
    }
  };
  // Intl needs 15 ms of a processor to answer, which delays the first paint. Temporal needs none, but is in few Safaris.
  requestAnimationFrame(() => setTimeout(keep));
})();
