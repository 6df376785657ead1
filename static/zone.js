// Keeps the browser's time zone in a cookie, so that pages show times in it. Without this script, times are in the zone
// that the person chose, else in UTC.
"use strict";

(() => {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const secure = location.protocol === "https:" ? "; secure" : "";
  if (timeZone) {
    document.cookie = `${document.currentScript.dataset.cookie}=${timeZone}; path=/; max-age=31536000; samesite=lax${secure}`;
  }
})();
