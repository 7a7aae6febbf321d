// A step of learning from clicks in words.

import { count, pValue } from "./format.js";

const HEADS = { promoted: ({ before, after }) => `${before} → ${after}`, kept: ({ before }) => `${before} stays`, "rolled back": ({ after }) => `Back to ${after}` };

export const headOf = (step) => HEADS[step.action](step);

export const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "");

// A retriever that was itself learned is not what the new one had to beat, but the one beneath it.
export const beaten = ({ compared_with: base, before }) => base || before;

export function measured(step) {
  const { measure, old: before, new: after, n_held_out: queries, p_value: p } = step;
  if (typeof before !== "number" || typeof after !== "number") return "";
  const luck = typeof p === "number" ? ` (${pValue(p)})` : "";
  return `${measure} ${before.toFixed(3)}${beaten(step) === step.before ? "" : ` of ${beaten(step)}`} → ${after.toFixed(3)} on ${count(queries, "held-out query", "held-out queries")}${luck}.`;
}

export const learned = (step) => [`${headOf(step)}.`, sentence(step.reason), measured(step)].filter(Boolean).join(" ");
