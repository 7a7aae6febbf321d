// A step in the history of search models in words: what was learned, measured and decided.

import { h } from "./dom.js";
import { count, percent, pValue } from "./format.js";

const HEADS = {
  promoted: ({ before, after }) => `${before} → ${after}`, changed: ({ before, after }) => `${before} → ${after}`,
  kept: ({ before }) => `${before} stays`, "rolled back": ({ after }) => `Back to ${after}`,
};

export const ORIGINS = { clicks: "learned from clicks", captions: "trained on captions", switch: "another search model", choice: "chosen by hand" };

export const headOf = (step) => HEADS[step.action](step);

export const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "");

// A search model that was itself learned is not what the new one had to beat, but the one beneath it.
export const beaten = ({ compared_with: base, before }) => base || before;

export function measured(step) {
  const { measure, old: before, new: after, n_held_out: queries, p_value: p, origin } = step;
  if (typeof before !== "number" || typeof after !== "number") return "";
  const luck = typeof p === "number" ? ` (${pValue(p)})` : "";
  const things = origin === "captions" ? count(queries, "held-out picture") : step.gate?.repeated ? `later searches for ${count(queries, "query", "queries")}` : count(queries, "held-out query", "held-out queries");
  return `${measure} ${before.toFixed(3)}${beaten(step) === step.before ? "" : ` of ${beaten(step)}`} → ${after.toFixed(3)} on ${things}${luck}.`;
}

export const learned = (step) => [`${headOf(step)}.`, sentence(step.reason), measured(step)].filter(Boolean).join(" ");

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;

const relative = (value) => `${value < 0 ? "−" : "+"}${(100 * Math.abs(value)).toFixed(1)} %`;
const TRAFFIC = [["repeated", "Queries asked before"], ["new", "New queries"], ["held_out", "Queries kept back, answered by similar ones"]];

// What clicks taught, part by part of the traffic: both search models on later searches of other people.
export function trafficTable({ gate, before }) {
  if (!gate?.repeated) return null;
  const rows = TRAFFIC.filter(([part]) => gate[part]?.n_searches).map(([part, title]) => {
    const { old, new: learnt, relative: gain, low, p_value: p, share, n_searches: searches, n_people: people } = gate[part];
    return [title, part === "held_out" ? "" : percent(share), [count(searches, "search", "searches"), people !== null && count(people, "visitor")].filter(Boolean).join(" of "), old.toFixed(3), learnt.toFixed(3), relative(gain), relative(low), pValue(p)];
  });
  const heads = ["Part of the traffic", "Share", "Judged by", before, "Learned", "Gain", "At worst", "Luck"];
  const { visual_consistency: consistency, margin, allowed } = gate;
  return h("details", {}, h("summary", {}, "All numbers"),
    h("div", { class: "table-scroll", tabindex: 0, role: "group", "aria-label": "All numbers" },
      h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, rows.map(([name, ...values]) => h("tr", {}, h("th", { scope: "row" }, name), values.map((value) => h("td", {}, value))))))),
    h("p", { class: "faint" }, `Pictures clicked for a query look alike by ${consistency.z.toFixed(1)} standard deviations beyond luck (${pValue(consistency.p_value)}). This comparison could use ${pValue(allowed).replace("=", "<")} of the error budget; no part may lose more than ${percent(margin)}.`));
}

// All that was measured when captions were learned from, and what was asked for.
export function gateTable({ gate }) {
  if (typeof gate?.old !== "number") return null;
  const spread = typeof gate.low === "number" ? ` (${signed(gate.low)} to ${signed(gate.high)}, 95 %)` : "";
  const rows = [[`Your captions: similarity finds the right one, MAP${spread}`, gate.old.toFixed(3), gate.new.toFixed(3), `better, p < ${gate.alpha}`]];
  if (typeof gate.rest_low === "number") {
    rows.push([`${gate.n_rest} other photographs, MAP`, gate.rest_old.toFixed(3), gate.rest_new.toFixed(3), `−${gate.margin} at worst, 95 % sure`]);
    rows.push([`${gate.n_absent} queries for nothing, refused`, percent(gate.refused_old), percent(gate.refused_new), "no fewer"]);
    rows.push(["Your captions and words, answered", percent(gate.answered_old), percent(gate.answered_new), `−${percent(gate.margin)} at worst`]);
  }
  const sources = gate.learned_from ? [h("p", { class: "faint" }, `Learned from ${gate.learned_from}.`)] : [];
  return h("details", {}, h("summary", {}, `All numbers, on ${count(gate.n_held_out, "held-out picture")}`),
    h("div", { class: "table-scroll", tabindex: 0, role: "group", "aria-label": "All numbers" },
      h("table", {}, h("thead", {}, h("tr", {}, ["Measured", "Before", "Trained", "Asked for"].map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, rows.map(([name, ...values]) => h("tr", {}, h("th", { scope: "row" }, name), values.map((value) => h("td", {}, value))))))), ...sources);
}
