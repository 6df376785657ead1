// Sends the answer to the app without a click. Without this script, the person presses the button.
"use strict";

document.querySelector("form[data-submit-now]")?.submit();
