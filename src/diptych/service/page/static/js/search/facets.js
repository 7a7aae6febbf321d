// The side panel: what the collection knows of its items, to narrow the search.

import { address, ask, isAbort, query } from "../parts/api.js";
import { h, iconButton } from "../parts/dom.js";
import { number } from "../parts/format.js";
import { fieldOf, joinFilters } from "../parts/search-state.js";
import { Kept } from "./keep.js";

const MOST = 8;
const small = matchMedia("(max-width: 899px)");

export class Facets {
  constructor(collection, onFilters) {
    Object.assign(this, { collection, onFilters, filters: [] });
    this.body = h("div", { class: "facets-body" });
    this.kept = new Kept(collection.name);
    this.element = h("aside", { class: "facets", id: "facets", "aria-label": "Filters" },
      h("div", { class: "dialog-head" }, h("h2", {}, "Filters"), iconButton("close", "Close the filters", { class: "small-only", onclick: () => this.element.hidePopover() })),
      this.kept.element, this.body, this.own());
    this.fit = () => {
      // As a drawer it closes by Escape or a tap outside, which the browser does; beside the results it just stands there.
      if (small.matches) this.element.popover = "auto";
      else this.element.removeAttribute("popover");
    };
    small.addEventListener("change", this.fit);
    this.fit();
  }

  close() {
    small.removeEventListener("change", this.fit);
    this.kept.close();
    this.asking?.abort();
  }

  own() {
    const error = h("p", { id: "own-filter-error", class: "field-error", role: "alert" });
    const say = (text) => {
      error.textContent = text;
      field.setAttribute("aria-invalid", String(Boolean(text)));
    };
    const field = h("input", {
      id: "own-filter", type: "text", placeholder: "label:dog or year>=2010", autocomplete: "off", spellcheck: "false", "aria-describedby": "own-filter-error", oninput: () => say(""),
    });
    const add = async (event) => {
      event.preventDefault();
      const filter = field.value.trim();
      if (!filter) return;
      try {
        // The service knows what a filter is; one that it refuses stays where it can be mended.
        await ask(address(this.collection.name, "facets") + query({ filter, limit: 1 }));
        field.value = "";
        this.onFilters([...this.filters, filter]);
      } catch (problem) {
        say(problem.message);
      }
    };
    return h("form", { class: "own-filter", onsubmit: add }, h("label", { for: "own-filter" }, "Custom filter"), field, error);
  }

  async show(filters) {
    const key = JSON.stringify(filters);
    if (key === this.key) return;
    Object.assign(this, { key, filters });
    this.asking?.abort();
    this.asking = new AbortController();
    try {
      this.draw(await this.ask(filters, this.asking.signal));
    } catch (error) {
      if (isAbort(error)) return;
      this.key = null;
      this.body.replaceChildren(h("p", { class: "faint" }, "The filters could not be read."));
    }
  }

  // Each chosen field is counted under the other fields' filters, so that its alternatives stay in sight.
  async ask(filters, signal) {
    const read = async (kept) =>
      (await ask(address(this.collection.name, "facets") + query({ filter: joinFilters(kept), limit: MOST }), { signal })).facets;
    const chosen = [...new Set(filters.map(fieldOf).filter(Boolean))];
    const [all, ...others] = await Promise.all([read(filters), ...chosen.map((field) => read(filters.filter((filter) => fieldOf(filter) !== field)))]);
    const own = new Map(chosen.map((field, place) => [field, others[place].find((facet) => facet.field === field)]));
    const facets = all.map((facet) => own.get(facet.field) ?? facet);
    const missing = chosen.filter((field) => own.get(field) && !all.some((facet) => facet.field === field));
    return [...facets, ...missing.map((field) => own.get(field))];
  }

  draw(facets) {
    const useful = facets.filter((facet) => facet.kind === "range" || facet.values.length);
    this.body.replaceChildren(...useful.map((facet) => (facet.kind === "range" ? this.range(facet) : this.values(facet))));
    if (!useful.length) this.body.append(h("p", { class: "faint" }, "Items have no labels or metadata to filter by yet."));
  }

  toggle(filter, on) {
    this.onFilters(on ? [...this.filters, filter] : this.filters.filter((other) => other !== filter));
  }

  values({ field, values }) {
    return h("fieldset", {}, h("legend", {}, field), values.map(({ value, count, filter }) =>
      h("label", { class: "facet-value" },
        h("input", { type: "checkbox", checked: this.filters.includes(filter), onchange: (event) => this.toggle(filter, event.target.checked) }),
        h("span", { class: "facet-name" }, String(value)), h("span", { class: "facet-count" }, number(count)))));
  }

  range({ field, minimum, maximum }) {
    const now = (sign) => this.filters.find((filter) => filter.startsWith(`${field}${sign}`))?.slice(field.length + 2) ?? "";
    const set = (sign, value) => {
      const others = this.filters.filter((filter) => !filter.startsWith(`${field}${sign}`));
      this.onFilters(value === "" ? others : [...others, `${field}${sign}${value}`]);
    };
    const end = (sign, label, bound) => h("label", {}, h("span", {}, label),
      h("input", { type: "number", step: "any", value: now(sign), placeholder: bound, onchange: (event) => set(sign, event.target.value) }));
    return h("fieldset", {}, h("legend", {}, field), h("div", { class: "facet-range" }, end(">=", "from", minimum), end("<=", "to", maximum)));
  }
}
