// Suggestions under the search box, as the ARIA combobox pattern wants them.

import { address, ask, isAbort, query } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { lastTerm } from "../parts/query-language.js";

const MOST = 7;

export class Suggestions {
  constructor(collection, input, onChoose) {
    Object.assign(this, { collection, input, onChoose, chosen: -1, texts: [] });
    this.list = h("ul", { id: "suggestions", class: "suggestions", role: "listbox", "aria-label": "Suggestions", hidden: true });
    for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": "suggestions", "aria-expanded": "false" })) {
      input.setAttribute(name, value);
    }
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("blur", () => this.close());
  }

  async look() {
    this.asking?.abort();
    const [before, prefix] = lastTerm(this.input.value);
    if (!prefix.trim()) return this.close();
    this.asking = new AbortController();
    try {
      const path = address(this.collection.name, "suggestions") + query({ prefix: prefix.trim(), limit: MOST });
      const { suggestions } = await ask(path, { signal: this.asking.signal });
      const others = suggestions.filter(({ text }) => text.toLowerCase() !== prefix.trim().toLowerCase());
      if (document.activeElement === this.input) this.show(others, before);
    } catch (error) {
      // Suggestions are a courtesy: without them the search goes on.
      if (!isAbort(error)) this.close();
    }
  }

  show(suggestions, before) {
    this.texts = suggestions.map(({ text }) => before + text);
    this.chosen = -1;
    this.list.replaceChildren(...suggestions.map(({ text, kind, count }, place) =>
      h("li", { role: "option", id: `suggestion-${place}`, "aria-selected": "false", onmousedown: (event) => this.choose(event, place) },
        h("span", {}, text), h("small", {}, kind === "label" ? `label, ${count}` : kind === "query" ? "asked before" : "caption"))));
    this.list.hidden = !suggestions.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.input.removeAttribute("aria-activedescendant");
  }

  close() {
    this.asking?.abort();
    if (!this.list.hidden) this.show([], "");
  }

  choose(event, place) {
    event.preventDefault();
    const text = this.texts[place];
    this.close();
    this.onChoose(text);
  }

  mark(place) {
    this.chosen = place;
    this.list.children[place]?.scrollIntoView({ block: "nearest", inline: "nearest" });
    [...this.list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === place)));
    if (place < 0) this.input.removeAttribute("aria-activedescendant");
    else this.input.setAttribute("aria-activedescendant", `suggestion-${place}`);
  }

  key(event) {
    // What is on its way would open the list again.
    if (event.key === "Escape") this.asking?.abort();
    if (this.list.hidden) return;
    const last = this.texts.length - 1;
    // Below the last come the results.
    if (event.key === "ArrowDown" && this.chosen === last) return this.close();
    if (event.key === "ArrowDown") this.mark(this.chosen + 1);
    else if (event.key === "ArrowUp") this.mark(this.chosen < 0 ? last : this.chosen - 1);
    else if (event.key === "Enter" && this.chosen >= 0) return this.choose(event, this.chosen);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }
}
