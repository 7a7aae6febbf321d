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

export const albumFilter = (title) => `album:"${title.replace(/["\\]/g, "\\$&")}"`;

// The album that is looked at, if nothing else narrows the list: it has an order of its own.
function albumOf(filters) {
  const match = filters.length === 1 ? filters[0].match(/^album:"((?:[^"\\*?]|\\.)+)"$/) : null;
  return match ? match[1].replace(/\\(.)/g, "$1") : null;
}

export const MODES = { auto: "Automatic", similarity: "By meaning", words: "By words", both: "By both" };

export const SORTS = { relevance: "By relevance", taken: "By date taken", added: "By date added", name: "By name" };

// Links of before said "1" where they meant both.
const readMode = (name) => (name === "1" ? "both" : Object.hasOwn(MODES, name ?? "") ? name : "auto");

function readLeast(text) {
  const share = Number(text || NaN);
  return share > 0 && share <= 1 ? share : null;
}

export function readState(params) {
  return {
    collection: params.get("c"),
    words: params.get("q") ?? "",
    chips: readChips(params),
    target: params.get("in") === "texts" ? "texts" : "images",
    filters: params.getAll("f"),
    mode: readMode(params.get("words")),
    sort: Object.hasOwn(SORTS, params.get("sort") ?? "") ? params.get("sort") : "relevance",
    retriever: params.get("by"),
    least: readLeast(params.get("least")),
    album: albumOf(params.getAll("f")),
  };
}

export function writeState(state) {
  const params = new URLSearchParams();
  if (state.collection) params.set("c", state.collection);
  if (state.words.trim()) params.set("q", state.words.trim());
  for (const chip of state.chips) params.append(chip.weight > 0 ? "like" : "unlike", `${chip.kind}:${chip.id}`);
  if (state.target === "texts") params.set("in", "texts");
  for (const filter of state.filters) params.append("f", filter);
  if (state.mode !== "auto") params.set("words", state.mode === "both" ? "1" : state.mode);
  if (state.sort !== "relevance") params.set("sort", state.sort);
  if (state.retriever) params.set("by", state.retriever);
  if (state.least) params.set("least", state.least);
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
    mode: state.mode !== "auto" && readTerms(state.words).some((term) => term.text) ? state.mode : undefined,
    sort: state.sort !== "relevance" ? state.sort : undefined,
    retriever: state.retriever ?? undefined,
    min_probability: state.least ?? undefined,
    ...more,
  };
}
