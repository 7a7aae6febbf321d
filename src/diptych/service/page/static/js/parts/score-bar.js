// How likely an answer is what was meant: a bar to compare at a glance, a number to read.

import { h } from "./dom.js";
import { percent } from "./format.js";

export function scoreBar(probability) {
  const filled = h("span", { class: "bar-fill", style: { width: `${(100 * probability).toFixed(1)}%` } });
  return h("span", { class: "score" },
    h("span", { class: "bar", "aria-hidden": "true" }, filled),
    h("span", { class: "score-number", title: "How likely it is that this is what you mean" }, percent(probability)));
}
