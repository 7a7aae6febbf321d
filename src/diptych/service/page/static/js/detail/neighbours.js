// The nearest pictures of an item, as a strip.

import { address, ask } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { addressOf, itemPath, readPlace } from "../parts/place.js";
import { thumbnail, titleOf } from "../search/tile.js";

const MOST = 13;

export function neighbours(collection, item, onOpen) {
  const strip = h("ul", { class: "strip" });
  const section = h("section", { "aria-labelledby": "neighbours-title", hidden: true }, h("h3", { id: "neighbours-title" }, "Similar items"), strip);
  const link = (answer) => h("li", {}, h("a", {
    href: addressOf(itemPath(answer.id), readPlace().params), "aria-label": titleOf(answer), title: titleOf(answer),
    onclick: (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      onOpen(answer);
    },
  }, thumbnail(collection, answer, { width: 96, height: 96 })));
  ask(address(collection, "search"), { method: "POST", json: { terms: [{ item: item.id }], limit: MOST, log: false } }).then(({ answers }) => {
    const others = answers.filter((answer) => answer.id !== item.id);
    strip.replaceChildren(...others.map(link));
    section.hidden = !others.length;
  }, () => section.remove());
  return section;
}
