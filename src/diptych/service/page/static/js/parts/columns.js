// A small column chart. The numbers are in its titles and in a list for those who do not see it.

import { h, svg } from "./dom.js";

const [WIDTH, HEIGHT, GAP] = [600, 96, 0.25];

export function columns(bars, { title, first, last, legend = "" }) {
  const most = Math.max(1e-9, ...bars.map(({ value }) => value));
  const step = WIDTH / bars.length;
  const rect = (place, value, name) => svg("rect", {
    class: name, x: (place + GAP / 2) * step, width: step * (1 - GAP), rx: 2,
    y: HEIGHT - (value / most) * HEIGHT, height: Math.max(value ? 1.5 : 0.5, (value / most) * HEIGHT),
  });
  const groups = bars.map(({ label, value, inner }, place) => svg("g", {}, svg("title", {}, label), rect(place, value, "column"), inner ? rect(place, inner, "column-inner") : null));
  return h("figure", { class: "columns" },
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + 1}`, preserveAspectRatio: "none", role: "img", "aria-label": title }, groups),
    h("figcaption", {}, h("span", {}, first), h("span", {}, legend), h("span", {}, last)),
    h("ul", { class: "hidden" }, bars.filter(({ value }) => value).map(({ label }) => h("li", {}, label))));
}
