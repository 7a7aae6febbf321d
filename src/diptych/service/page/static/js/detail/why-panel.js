// Why an answer is there: a sentence, and bars for what the search model really compared.

import { address, ask } from "../parts/api.js";
import { h, hidden } from "../parts/dom.js";
import { count, percent } from "../parts/format.js";

const MOST = 10;

const LEAST = 0.005;

function signed(value) {
  const amount = Math.abs(value).toFixed(2);
  return amount === "0.00" ? amount : `${value < 0 ? "−" : "+"}${amount}`;
}

// Sentences of the service write "23 %", where a line may break; the page writes "23%" throughout.
const tidy = (sentence) => sentence.replace(/(\d) %/g, "$1%");
const largest = (values) => Math.max(1e-9, ...values.map((value) => Math.abs(value ?? 0)));
const share = (value, most) => ({ width: `${((100 * Math.abs(value ?? 0)) / most).toFixed(1)}%` });

// The two vectors of probabilities share an axis, so that what they agree on forms a symmetrical shape.
function mirrored({ bars }) {
  const most = largest(bars.flatMap(({ query, answer }) => [query, answer]));
  const told = bars.filter(({ query, answer }) => Math.max(query ?? 0, answer ?? 0) >= LEAST).slice(0, MOST);
  const rest = bars.length - told.length;
  const side = (value, name) => h("span", { class: `mirror-side ${name}` }, h("span", { class: "mirror-fill", style: share(value, most) }), h("span", { class: "mirror-number" }, percent(value ?? 0)));
  return h("div", { class: "mirror" },
    h("div", { class: "mirror-row mirror-head", "aria-hidden": "true" }, h("span", {}, "query"), h("span", {}), h("span", {}, "answer")),
    h("ul", {}, told.map(({ name, query, answer }) => h("li", { class: "mirror-row" },
      side(query, "query"), h("span", { class: "mirror-name" }, name, hidden(": query and answer ")), side(answer, "answer")))),
    rest > 0 && h("p", { class: "faint" }, `${count(rest, "further class", "further classes")} with less on both sides`));
}

function signedBars({ bars }, describe = () => null) {
  const most = largest(bars.map(({ contribution }) => contribution));
  return h("ul", { class: "signed" }, bars.slice(0, MOST).map((bar) => h("li", { class: bar.contribution < 0 ? "against" : "for" },
    h("span", { class: "signed-name" }, bar.name, describe(bar)),
    h("span", { class: "signed-track", "aria-hidden": "true" }, h("span", { class: "signed-fill", style: share(bar.contribution, most) })),
    h("span", { class: "signed-number" }, signed(bar.contribution)))));
}

function labels(view) {
  return signedBars(view, ({ query, answer }) => {
    const probability = [answer, query].find((value) => value !== null && value >= 0 && value <= 1);
    return probability === undefined ? null : h("small", {}, ` ${percent(probability)}`);
  });
}

function words(view) {
  const most = largest(view.bars.map(({ contribution }) => contribution));
  // Words that change nothing stand in the line of words; as bars they would be noise.
  const telling = view.bars.filter(({ contribution }) => Math.abs(contribution) >= LEAST);
  const strongest = { ...view, bars: telling.sort((one, other) => Math.abs(other.contribution) - Math.abs(one.contribution)) };
  return h("div", {},
    h("p", { class: "tinted" }, view.bars.flatMap(({ name, contribution }) => [
      h("span", { class: contribution < 0 ? "against" : "for", style: { "--strength": (Math.abs(contribution) / most).toFixed(2) } }, name), " "])),
    signedBars(strongest));
}

const DRAWINGS = { classes: mirrored, labels, words, parts: (view) => signedBars(view) };

function drawView(view, first) {
  return h("section", { class: "why-view" }, h("h4", {}, view.title), !first && h("p", {}, tidy(view.sentence)),
    (DRAWINGS[view.kind] ?? DRAWINGS.parts)(view), view.note && h("p", { class: "faint" }, view.note));
}

function terms(explanation) {
  if (explanation.terms.length < 2) return null;
  return h("section", { class: "why-view" }, h("h4", {}, "Parts of the query"), signedBars({ bars: explanation.terms }));
}

export function whyPanel(collection, request) {
  const body = h("div", { class: "why-body", "aria-busy": "true" });
  const panel = h("section", { class: "why", "aria-labelledby": "why-title" }, h("h3", { id: "why-title" }, "Why this answer"), body);
  ask(address(collection, "explanations"), { method: "POST", json: request }).then(
    (explanation) => {
      const views = explanation.views.filter(({ bars }) => bars.length);
      body.replaceChildren(...[h("p", { class: "why-summary" }, tidy(explanation.summary)), terms(explanation), ...views.map((view, place) => drawView(view, place === 0))].filter(Boolean));
    },
    (error) => body.replaceChildren(h("p", { class: "faint" }, error.message)),
  ).finally(() => body.removeAttribute("aria-busy"));
  return panel;
}
