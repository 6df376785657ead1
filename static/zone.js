// Keeps the browser's time zone in a cookie, so that pages show times in it. Without this script, times are in the zone
// that the person chose, else in UTC.
"use strict";

(() => {
  const { cookie } = document.currentScript.dataset;
  const keep = () => {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    const secure = location.protocol === "https:" ? "; secure" : "";
    if (timeZone) {
      document.cookie = `${cookie}=${timeZone}; path=/; max-age=31536000; samesite=lax${secure}`;
    }
  };
  // The first question for the zone takes a browser 20 ms. It waits until the page is painted.
  requestAnimationFrame(() => setTimeout(keep));
})();
