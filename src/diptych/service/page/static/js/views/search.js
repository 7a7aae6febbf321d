// The search view. The address says what is searched; everything a person does changes the address, and the view follows.

import { address, ask, isAbort, isReadOnly, query, session } from "../parts/api.js";
import { h, icon, iconButton } from "../parts/dom.js";
import { count, duration, percent, time } from "../parts/format.js";
import { announce, failure, notice, tell } from "../parts/messages.js";
import { addressOf, go, openItem } from "../parts/place.js";
import { isAsking, joinFilters, MODES, readState, requestOf, SORTS, whatIsAsked, writeState } from "../parts/search-state.js";
import { Overview } from "../places/overview.js";
import { addPictures } from "../search/add-pictures.js";
import { Facets } from "../search/facets.js";
import { chooseAlbums } from "../search/keep.js";
import { Results } from "../search/results.js";
import { SearchBox } from "../search/search-box.js";
import { ShareMenu } from "../search/share-menu.js";
import { sendForPictures, titleOf } from "../search/tile.js";

const PAGE = 30;
const FIRST = 6;
const LONGEST_PAGE = 200;
const SETTLED_AFTER = 1200;
const PATIENCE = 400;

class SearchView {
  constructor(root, app) {
    this.app = app;
    this.collection = app.collection;
    this.settled = true;
    this.box = new SearchBox(this.collection, {
      onWords: (words, { typing }) => this.change({ words }, typing),
      onSettle: () => this.settle(),
      onChips: (chips, words = this.box.input.value) => this.change({ chips, words }),
      onDown: (event) => this.enterResults(event),
    });
    this.facets = new Facets(this.collection, (filters) => this.change({ filters }));
    this.overview = new Overview(this.collection, (filters) => this.change({ filters }));
    this.results = new Results(this.collection.name, {
      onOpen: (answer) => this.open(answer),
      onLike: (answer, weight) => this.like(answer, weight),
      onKeep: (answer) => chooseAlbums(this.collection.name, [answer.id], titleOf(answer)),
      onUp: () => this.box.input.focus(),
    });
    this.summary = h("p", { class: "summary" });
    this.active = h("ul", { class: "active-filters", "aria-label": "Active filters" });
    this.above = h("div", { class: "above" });
    root.append(h("h1", { class: "hidden" }, `Search ${this.collection.name}`), this.box.element, this.toolbar(),
      h("div", { class: "search-body" }, this.facets.element, h("div", { class: "answers" }, this.overview.element, this.active, this.above, this.results.element)));
  }

  close() {
    clearTimeout(this.timer);
    this.asking?.abort();
    for (const part of [this.box, this.facets, this.overview, this.results]) part.close();
  }

  toolbar() {
    const choice = (target, label, name) => h("label", {},
      h("input", { type: "radio", name: "target", value: target, onchange: () => this.change({ target }) }), h("span", {}, icon(name), label));
    this.targets = h("fieldset", { class: "segmented" }, h("legend", { class: "hidden" }, "What to find"), choice("images", "Pictures", "picture"), choice("texts", "Texts", "text"));
    this.mode = h("select", { "aria-label": "Match by", title: "By meaning, by words in captions, file names, keywords and pictures, or by both", onchange: () => this.change({ mode: this.mode.value }) },
      Object.entries(MODES).map(([value, label]) => h("option", { value }, label)));
    this.sort = h("select", { "aria-label": "Sort", onchange: () => this.change({ sort: this.sort.value }) },
      Object.entries(SORTS).map(([value, label]) => h("option", { value }, label)));
    const filters = iconButton("filter", "Filters", { class: "small-only with-word", popovertarget: "facets" });
    filters.append("Filters");
    this.addition = this.adding("quiet with-word add");
    return h("div", { class: "toolbar" }, this.targets,
      h("span", { class: "mode", hidden: !this.collection.items }, this.mode),
      h("span", { class: "sort" }, this.sort),
      filters, this.addition, new ShareMenu(this.collection.name, () => ({ state: this.state, page: this.page, answers: this.results.answers })).element, this.summary);
  }

  adding(style) {
    const add = () => addPictures(this.collection.name, () => {
      this.app.refresh().catch(() => {});
      this.rerun();
    });
    return h("button", { type: "button", class: style, onclick: add }, icon("plus"), "Add pictures");
  }

  enterResults(event) {
    const first = this.results.links()[0];
    if (!first) return;
    event.preventDefault();
    first.focus();
  }

  // Typing changes one entry of the history; everything else makes a new one, so that "back" undoes it.
  change(patch, typing = false) {
    const next = { ...this.state, ...patch };
    const params = writeState(next);
    if (params.toString() === writeState(this.state).toString()) return;
    const replace = typing && !this.settled;
    this.settled = !typing;
    go("/", params, { replace });
  }

  update({ params }) {
    this.params = params;
    const key = params.toString();
    if (key === this.key) return;
    this.key = key;
    this.state = readState(params);
    this.show();
    this.run();
  }

  show() {
    const { words, chips, target, mode, sort, filters, least, album } = this.state;
    this.box.show(words, chips);
    this.targets.querySelector(`[value=${target}]`).checked = true;
    this.mode.value = mode;
    const isBrowsing = !isAsking(this.state);
    const [first] = this.sort.options;
    first.hidden = isBrowsing && !album;
    first.textContent = isBrowsing ? "In its order" : SORTS.relevance;
    this.sort.value = first.hidden && sort === "relevance" ? "added" : sort;
    this.addition.hidden = isReadOnly();
    this.facets.show(filters);
    this.overview.show(filters);
    const active = filters.map((filter) => ({ label: filter, name: `the filter ${filter}`, rest: { filters: filters.filter((other) => other !== filter) } }));
    if (least && isAsking(this.state)) active.push({ label: `at least ${percent(least)} likely`, name: "the least probability", rest: { least: null } });
    this.active.replaceChildren(...active.map(({ label, name, rest }) => h("li", {}, h("span", {}, label),
      iconButton("close", `Remove ${name}`, { onclick: () => this.change(rest) }))));
  }

  async run() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const state = this.state;
    performance.mark("diptych:asked");
    this.results.element.setAttribute("aria-busy", "true");
    // On a slow connection, what was said of the answers before is no longer true.
    const waiting = setTimeout(() => { this.summary.textContent = "Searching …"; }, PATIENCE);
    signal.addEventListener("abort", () => clearTimeout(waiting));
    try {
      const page = await (isAsking(state) ? this.search(state, 0, signal) : this.browse(state, null, signal));
      await sendForPictures(this.collection.name, page.answers.slice(0, FIRST));
      if (signal.aborted) return;
      this.present(page, state, signal);
    } catch (error) {
      if (isAbort(error)) return;
      this.results.clear();
      this.summary.textContent = "";
      this.above.replaceChildren(failure(error, () => this.run()));
      announce(error.message);
    }
    clearTimeout(waiting);
    this.results.element.removeAttribute("aria-busy");
  }

  search(state, offset, signal, more = {}) {
    const request = requestOf(state, { limit: PAGE, offset, log: false, ...more });
    return ask(address(this.collection.name, "search"), { method: "POST", json: request, signal }).then((page) => ({ ...page, next: page.next_offset }));
  }

  async browse(state, cursor, signal) {
    const isSorted = state.sort !== "relevance";
    const path = state.album && !isSorted
      ? address(this.collection.name, "albums", state.album, "items") + query({ limit: PAGE, cursor })
      : address(this.collection.name, "items") + query({ filter: joinFilters(state.filters), sort: isSorted ? state.sort : null, limit: PAGE, cursor });
    const page = await ask(path, { signal });
    return { answers: page.items, total: page.total, next: page.next, browsing: true };
  }

  present(page, state, signal) {
    const asking = !page.browsing;
    // Until the next answers are there, a person sees these and acts on these, whatever is asked meanwhile.
    this.shown = state;
    this.page = { browsing: false, ...page };
    this.logging = null;
    // While two search models are interleaved, what is logged and what follows must be drawn as what was shown.
    this.draw = page.draw ?? undefined;
    this.results.fill(page, asking ? state.target : "images", async (next) => {
      const searchId = asking ? await this.settle() : null;
      return asking ? this.search(state, next, signal, { draw: page.draw ?? undefined, ...(searchId ? { log: true, search_id: searchId } : {}) }) : this.browse(state, next, signal);
    });
    this.app.list = {
      answers: this.results.answers, focus: (answer) => this.results.focus(answer), asked: asking ? { ...whatIsAsked(state), target: state.target, retriever: state.retriever ?? undefined } : null,
      click: (answer, kind) => this.click(answer, kind), more: () => this.results.load(), like: (answer, weight) => this.like(answer, weight), changed: () => this.rerun(),
    };
    this.above.replaceChildren(...this.remarks(page, state));
    this.summarise(page);
    this.markShown();
    if (asking && this.collection.log_clicks) this.timer = setTimeout(() => this.settle(), SETTLED_AFTER);
  }

  rerun() {
    this.facets.key = null;
    this.facets.show(this.state.filters);
    this.overview.key = null;
    this.overview.show(this.state.filters);
    this.run();
  }

  summarise(page) {
    const text = page.browsing
      ? `${count(page.total, "item")}${this.state.filters.length ? " left by the filters" : ""}`
      : `${count(page.considered, this.state.target === "texts" ? "text" : "picture")} searched in ${duration(page.seconds)}`;
    const meaning = !page.browsing && !page.draw && page.answers.length > 0 && " · of results at 70%, seven in ten show what was asked for";
    this.summary.replaceChildren(text, ...(meaning ? [h("span", { class: "faint" }, meaning)] : []));
    const good = page.answers.filter((answer) => answer.good).length;
    const notes = page.browsing ? "" : page.notes.map((note) => `${note} `).join("");
    announce(notes + (page.browsing ? text : page.no_good_match ? "No good match" : page.draw ? text : `${good}${page.next !== null && good === page.answers.length ? " or more" : ""} likely. ${text}`));
  }

  remarks(page, state) {
    if (page.browsing && !page.total) return [state.filters.length ? this.nothingLeft() : this.nothingHere()];
    if (page.browsing) return [];
    if (!page.answers.length && (state.least || state.sort !== "relevance") && page.considered) return [this.nothingLikely(state)];
    if (!page.answers.length) return [state.filters.length ? this.nothingLeft() : this.nothingFound(state)];
    const notes = [...this.wordsUnderstood(page, state), ...page.notes.map((note) => h("p", { class: "note" }, note))];
    return page.no_good_match ? [...notes, this.noGoodMatch(state)] : notes;
  }

  // What is not wanted, and words that seem to be misspelt; pictures in the query have chips of their own.
  wordsUnderstood(page, state) {
    if (state.chips.length) return [];
    const link = (words) => h("a", { href: addressOf("/", writeState({ ...state, words })) }, words);
    const said = [];
    if (page.did_you_mean) {
      said.push(page.is_corrected
        ? h("p", { class: "note" }, "Searched for ", h("strong", {}, page.did_you_mean), ". As typed: ", link(`"${state.words.trim()}"`))
        : h("p", { class: "note" }, "Did you mean ", link(page.did_you_mean), "?"));
    }
    const terms = page.query.split(" - ");
    const chips = page.unwanted.map((words) => {
      const rest = terms.filter((term) => term.replace(/^[\d.]+:/, "") !== words).join(" - ");
      return h("li", {}, h("span", {}, `− ${words}`),
        terms.length > 1 && rest && iconButton("close", `Search with ${words} too`, { onclick: () => this.change({ words: rest }) }));
    });
    if (chips.length) said.push(h("ul", { class: "active-filters", "aria-label": "Not wanted" }, chips));
    return said;
  }

  noGoodMatch(state) {
    const actions = [
      this.collection.items > 0 && state.mode !== "both" && state.words && h("button", { type: "button", onclick: () => this.change({ mode: "both" }) }, "Also match single words"),
      state.filters.length > 0 && h("button", { type: "button", onclick: () => this.change({ filters: [] }) }, "Remove the filters"),
      h("button", { type: "button", onclick: () => this.change({ target: state.target === "texts" ? "images" : "texts" }) }, state.target === "texts" ? "Search pictures" : "Search texts"),
    ];
    return notice("No good match", "Nothing here is likely to be what you mean. The nearest are below; other or fewer words may find more.", ...actions.filter(Boolean));
  }

  nothingFound(state) {
    const [missing, other] = state.target === "texts" ? ["no texts to search; add captions to its items", "images"] : ["no pictures to search", "texts"];
    return notice("Nothing found", `This collection has ${missing}.`,
      h("button", { type: "button", class: "primary", onclick: () => this.change({ target: other }) }, other === "texts" ? "Search texts" : "Search pictures"));
  }

  nothingLikely(state) {
    return notice("No good match", `Nothing here is ${state.least ? `at least ${percent(state.least)} ` : ""}likely to be what you mean.`,
      h("button", { type: "button", class: "primary", onclick: () => this.change({ least: null, sort: "relevance" }) }, "Show the nearest"));
  }

  nothingLeft() {
    return notice("No matching items", "No item passes all the filters.", h("button", { type: "button", class: "primary", onclick: () => this.change({ filters: [] }) }, "Remove the filters"));
  }

  nothingHere() {
    if (isReadOnly()) return notice("This collection is empty", "Whoever runs the service can fill it with “diptych index FOLDER”.");
    return notice("This collection is empty", "Add pictures here, or put them into its folder and index it.",
      this.adding("primary"), h("button", { type: "button", onclick: () => this.index() }, "Index the folder"));
  }

  async index() {
    try {
      await ask(address(this.collection.name, "jobs"), { method: "POST", json: { kind: "index" } });
      go("/jobs", new URLSearchParams(this.state.collection ? { c: this.state.collection } : {}));
    } catch (error) {
      tell(error.message, "error");
    }
  }

  // The first picture on the screen is what a person waits for.
  markShown() {
    const shown = () => requestAnimationFrame(() => performance.mark("diptych:shown"));
    const first = this.results.list.querySelector("img");
    if (!first || first.complete) shown();
    else first.addEventListener("load", shown, { once: true });
  }

  // Half-typed queries are not worth remembering. One that stands a moment, or that is acted on, is logged as it stands.
  settle() {
    this.settled = true;
    const state = this.shown;
    if (!state || state.sort !== "relevance" || !this.collection.log_clicks || !isAsking(state) || !this.results.answers.length) return Promise.resolve(null);
    if (this.logging?.state !== state) {
      clearTimeout(this.timer);
      const limit = Math.min(LONGEST_PAGE, Math.max(PAGE, this.results.answers.length));
      const answer = this.search(state, 0, undefined, { log: true, limit, draw: this.draw }).then((page) => page.search_id, () => null);
      this.logging = { state, answer };
    }
    return this.logging.answer;
  }

  async click(answer, kind) {
    const searchId = await this.settle();
    if (!searchId || !session.csrf) return;
    const click = { search_id: searchId, item: answer.id, position: answer.position, caption_id: answer.caption_id ?? undefined, kind };
    // A lost click must never disturb the person who made it.
    ask(address(this.collection.name, "clicks"), { method: "POST", json: click, keepalive: true }).catch(() => {});
  }

  open(answer) {
    this.click(answer, "open");
    openItem(answer.id, { why: answer.caption_id ?? null });
  }

  like(answer, weight) {
    this.click(answer, weight > 0 ? "more_like" : "less_like");
    const others = this.state.chips.filter((chip) => chip.id !== answer.id);
    this.change({ chips: [...others, { kind: "item", id: answer.id, weight }] });
    announce(`${weight > 0 ? "More" : "Less"} like ${titleOf(answer)}`);
    window.scrollTo(0, 0);
  }
}

export const open = (root, app) => new SearchView(root, app);
