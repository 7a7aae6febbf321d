// When and where the pictures were taken, above the answers; there only where photographs tell.

import { address, ask, isAbort, query } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { fieldOf, joinFilters } from "../parts/search-state.js";
import { timeline } from "./timeline.js";
import { World } from "./world.js";

const [TIMES, PLACES] = [["year", "taken"], ["within"]];
const without = (filters, fields) => filters.filter((filter) => !fields.includes(fieldOf(filter)));

export class Overview {
  constructor(collection, onFilters) {
    Object.assign(this, { collection: collection.name, onFilters, filters: [] });
    this.time = h("div", {});
    this.world = new World(this.collection, (filter, on) => this.toggle(filter, on));
    this.body = h("div", { class: "overview-body" }, this.time, this.world.element);
    this.element = h("details", { class: "overview", hidden: true, open: matchMedia("(min-width: 900px)").matches }, h("summary", {}, "When and where"), this.body);
  }

  close() {
    this.world.close();
    this.asking?.abort();
  }

  toggle(filter, on, instead = null) {
    const others = this.filters.filter((other) => other !== filter && other !== instead);
    this.onFilters(on ? [...others, filter] : others);
  }

  // As for the facets, what is chosen is counted under the other filters, so that its alternatives stay in sight.
  async show(filters) {
    const key = JSON.stringify(filters);
    if (key === this.key) return;
    Object.assign(this, { key, filters });
    this.asking?.abort();
    this.asking = new AbortController();
    try {
      const path = address(this.collection, "timeline") + query({ filter: joinFilters(without(filters, TIMES)) });
      const [{ periods }, placed] = await Promise.all([ask(path, { signal: this.asking.signal }), this.world.show(filters, without(filters, PLACES))]);
      this.time.replaceChildren(...(periods.length ? [timeline(periods, filters, { onToggle: (...choice) => this.toggle(...choice), onYears: () => this.onFilters(without(this.filters, TIMES)) })] : []));
      this.world.element.hidden = !placed;
      this.element.hidden = !periods.length && !placed;
    } catch (error) {
      if (isAbort(error)) return;
      this.key = null;
      this.element.hidden = true;
    }
  }
}
