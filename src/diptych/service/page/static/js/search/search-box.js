// The search box: words with suggestions, pictures as chips, and a word on the query language.

import { h, icon, iconButton } from "../parts/dom.js";
import { MEANINGS } from "../parts/words.js";
import { chip } from "./chips.js";
import { PictureInput } from "./picture-input.js";
import { Suggestions } from "./suggestions.js";

const PAUSE = 150;

const HELP = [
  ["a red car", "words, in plain language"],
  ["beach + dog", "like both"],
  ["car - red", "like the first, unlike the second"],
  ["2:snow + house", "the first counts double"],
  ["\"salt - pepper\"", "in quotation marks, signs are text"],
];

function help() {
  return h("div", { id: "query-help", class: "popover", popover: "auto" },
    h("h2", {}, "Query syntax"),
    h("dl", {}, HELP.map(([example, what]) => h("div", {}, h("dt", {}, h("code", {}, example)), h("dd", {}, what)))),
    h("p", {}, "Drop, paste or choose a picture to search with it, alone or together with words."),
    h("details", {}, h("summary", {}, "Words on this page"), h("dl", {}, Object.entries(MEANINGS).map(([word, meaning]) => h("div", {}, h("dt", {}, word), h("dd", {}, meaning)))),
      h("p", {}, "The glossary in the documentation explains the others.")));
}

export class SearchBox {
  constructor(collection, { onWords, onSettle, onChips, onDown }) {
    Object.assign(this, { collection, onWords, onSettle, onChips, chips: [] });
    this.input = h("input", {
      id: "search-words", type: "search", name: "q", "data-search-box": true, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      enterkeyhint: "search", maxlength: 2000, placeholder: "Describe what you are looking for", "aria-label": "Search",
    });
    this.suggestions = new Suggestions(collection, this.input, (text) => this.choose(text));
    this.pictures = new PictureInput((part) => onChips([...this.chips, part]));
    this.chipList = h("ul", { class: "chips", "aria-label": "Pictures in the query" });
    this.clear = iconButton("close", "Clear the search", { class: "clear", onclick: () => this.empty() });
    const helpButton = iconButton("text", "Query syntax", { popovertarget: "query-help", class: "how" });
    helpButton.replaceChildren("?");
    this.element = h("form", { class: "ask", role: "search", onsubmit: (event) => this.submit(event) },
      h("div", { class: "ask-box" }, icon("search"), this.chipList, this.input, this.clear, this.pictures.button, helpButton, this.pictures.field),
      this.suggestions.list, help());
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("keydown", (event) => event.key === "Backspace" && !this.input.value && this.chips.length && onChips(this.chips.slice(0, -1)));
    this.input.addEventListener("keydown", (event) => event.key === "ArrowDown" && this.suggestions.list.hidden && !event.defaultPrevented && onDown(event));
    this.input.addEventListener("change", () => onSettle());
  }

  close() {
    clearTimeout(this.timer);
    this.pictures.close();
  }

  show(words, chips) {
    // A person who is typing is ahead of the address; their text stays.
    if (document.activeElement !== this.input || !this.timer) this.input.value = words === this.input.value.trim() ? this.input.value : words;
    this.chips = chips;
    this.chipList.replaceChildren(...chips.map((part, place) => chip(this.collection, part, {
      onTurn: () => this.onChips(chips.map((other, index) => (index === place ? { ...other, weight: -other.weight } : other))),
      onRemove: () => {
        this.onChips(chips.filter((_, index) => index !== place));
        this.input.focus();
      },
    })));
    this.clear.hidden = !words && !chips.length;
  }

  typed() {
    this.clear.hidden = !this.input.value && !this.chips.length;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      // Answers are what a person waits for; they are asked for first.
      this.onWords(this.input.value, { typing: true });
      this.suggestions.look();
    }, PAUSE);
  }

  choose(text) {
    this.input.value = text;
    this.now();
  }

  now() {
    clearTimeout(this.timer);
    this.timer = null;
    this.onWords(this.input.value, { typing: false });
  }

  submit(event) {
    event.preventDefault();
    this.suggestions.close();
    this.now();
    this.onSettle();
  }

  empty() {
    this.input.value = "";
    clearTimeout(this.timer);
    this.timer = null;
    this.onChips([], "");
    this.input.focus();
  }
}
