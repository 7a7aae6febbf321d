// What is searched for, as it stands in the address and as it is asked of the service.

import { readTerms } from "./query-language.js";

const FIELD = /^([^\s()"':=!<>]+)\s*(!=|>=|<=|:|=|>|<)\s*(?:"(?:[^"\\]|\\.)*"|[^\s()"]+)$/;

// "Less like this" turns the answers away from a picture. With the weight of the words it would undo them: a picture of
// a dog has most in common with the words "a dog". Relevance feedback after Rocchio weighs it less for the same reason.
const LESS = -0.3;

function readChips(params) {
  const chips = [];
  for (const [name, value] of params) {
    if (name !== "like" && name !== "unlike") continue;
    const [kind, ...id] = value.split(":");
    if ((kind === "item" || kind === "upload") && id.length) chips.push({ kind, id: id.join(":"), weight: name === "like" ? 1 : -1 });
  }
  return chips;
}

export function readState(params) {
  return {
    collection: params.get("c"),
    words: params.get("q") ?? "",
    chips: readChips(params),
    target: params.get("in") === "texts" ? "texts" : "images",
    filters: params.getAll("f"),
    hybrid: params.get("words") === "1",
    retriever: params.get("by"),
  };
}

export function writeState(state) {
  const params = new URLSearchParams();
  if (state.collection) params.set("c", state.collection);
  if (state.words.trim()) params.set("q", state.words.trim());
  for (const chip of state.chips) params.append(chip.weight > 0 ? "like" : "unlike", `${chip.kind}:${chip.id}`);
  if (state.target === "texts") params.set("in", "texts");
  for (const filter of state.filters) params.append("f", filter);
  if (state.hybrid) params.set("words", "1");
  if (state.retriever) params.set("by", state.retriever);
  return params;
}

export const fieldOf = (filter) => filter.match(FIELD)?.[1] ?? null;

const isRange = (filter) => /^(>=|<=|>|<)/.test(filter.match(FIELD)?.[2] ?? "");

// Values of one field are alternatives; everything else has to hold together.
export function joinFilters(filters) {
  const groups = new Map();
  for (const filter of filters) {
    const key = fieldOf(filter) === null || isRange(filter) ? filter : fieldOf(filter);
    groups.set(key, [...(groups.get(key) ?? []), filter]);
  }
  const parts = [...groups.values()].map((group) =>
    group.length > 1 ? `(${group.join(" or ")})` : fieldOf(group[0]) ? group[0] : `(${group[0]})`);
  return parts.join(" and ") || undefined;
}

export const isAsking = (state) => Boolean(state.words.trim() || state.chips.length);

export function whatIsAsked(state) {
  if (!state.chips.length) return { query: state.words.trim() };
  return { terms: [...readTerms(state.words), ...state.chips.map(({ kind, id, weight }) => ({ [kind]: id, weight: weight > 0 ? 1 : LESS }))] };
}

export function requestOf(state, more = {}) {
  return {
    ...whatIsAsked(state),
    target: state.target,
    filter: joinFilters(state.filters),
    hybrid: state.hybrid && readTerms(state.words).some((term) => term.text) ? 0.5 : undefined,
    retriever: state.retriever ?? undefined,
    ...more,
  };
}
