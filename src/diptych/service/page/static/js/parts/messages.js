// What the page says beside what it shows: to screen readers, in passing, and when something must be confirmed.

import { h } from "./dom.js";

export function announce(text) {
  document.getElementById("live").textContent = text;
}

export function tell(text, kind = "done") {
  const message = h("p", { class: `message ${kind}`, role: kind === "error" ? "alert" : "status" }, text);
  const open = [...document.querySelectorAll("dialog[open]")].pop();
  // What lies under a modal dialog is inert; a message belongs where it can be seen and heard.
  (open ?? document.getElementById("messages")).append(message);
  setTimeout(() => message.remove(), kind === "error" ? 8000 : 4000);
}

const ADVICE = {
  0: "Start it again with “diptych serve”, then try again.",
  429: "Too many requests came at once; wait a moment.",
  503: "The collection is being written; wait a moment.",
};

export function failure(error, retry) {
  const advice = ADVICE[error.status];
  const button = retry && h("button", { type: "button", class: "primary", onclick: retry }, "Try again");
  const title = error.status === 0 ? "No connection" : error.status === 429 || error.status === 503 ? "Busy" : "Something went wrong";
  return h("div", { class: "notice error", role: "alert" }, h("h2", {}, title), h("p", {}, error.message), advice && h("p", {}, advice), button);
}

export function notice(title, text, ...actions) {
  return h("div", { class: "notice" }, h("h2", {}, title), text && h("p", {}, text), actions.length > 0 && h("div", { class: "actions" }, actions));
}

export function confirm(question, action) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "confirm", "aria-labelledby": "confirm-question" },
      h("p", { id: "confirm-question" }, question),
      h("div", { class: "actions" },
        h("button", { type: "button", autofocus: true, onclick: () => dialog.close("") }, "Cancel"),
        h("button", { type: "button", class: "danger", onclick: () => dialog.close("yes") }, action)));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
