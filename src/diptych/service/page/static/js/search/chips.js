// Pictures in the search box: each counts for or against.

import { address } from "../parts/api.js";
import { h, icon, iconButton } from "../parts/dom.js";

const previewOf = (collection, { kind, id }) =>
  kind === "upload" ? `/v1/uploads/${encodeURIComponent(id)}` : address(collection.name, "items", id, "thumbnail");

export function chip(collection, part, { onTurn, onRemove }) {
  const what = part.kind === "upload" ? "your picture" : "an item";
  const sign = part.weight > 0 ? "like" : "unlike";
  const image = h("img", { src: previewOf(collection, part), alt: "", width: 36, height: 36 });
  image.addEventListener("error", () => image.replaceWith(h("span", { class: "chip-words" }, icon("text"))), { once: true });
  return h("li", { class: `chip ${sign}` },
    h("button", { type: "button", class: "chip-turn", title: "Switch between like and unlike", "aria-label": `${sign} ${what}; turn round`, onclick: onTurn },
      h("span", { class: "sign", "aria-hidden": "true" }, part.weight > 0 ? "+" : "−"), image),
    iconButton("close", `Remove ${what} from the query`, { class: "chip-remove", onclick: onRemove }));
}
