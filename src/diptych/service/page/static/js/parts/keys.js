// Shortcuts of the whole page, and the dialog that lists them.

import { h, iconButton } from "./dom.js";

const KEYS = [
  ["/", "go to the search box"],
  ["↓ ↑", "from the search box into the results, and back"],
  ["← → ↑ ↓", "move among results, or the map"],
  ["Enter", "open a result"],
  ["m", "more like the focused result"],
  ["l", "less like the focused result"],
  ["← →", "previous and next item, in the detail view"],
  ["z", "zoom the picture, in the detail view"],
  ["Esc", "close what is open"],
  ["+ −", "zoom the map"],
  ["?", "show the keyboard shortcuts"],
];

export const isTyping = (target) => target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;

export function showKeys() {
  if (document.querySelector("dialog.keys")) return;
  const rows = KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)));
  const dialog = h("dialog", { class: "keys", "aria-labelledby": "keys-title" },
    h("div", { class: "dialog-head" }, h("h2", { id: "keys-title" }, "Keyboard shortcuts"), iconButton("close", "Close", { onclick: () => dialog.close() })),
    h("dl", {}, rows));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const box = document.querySelector("[data-search-box]");
    if (event.key === "/" && box && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (event.key === "?") {
      event.preventDefault();
      showKeys();
    }
  });
}
