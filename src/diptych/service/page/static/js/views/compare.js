// The compare view: one query, two search models, side by side.

import { HistoryCard } from "../compare/history.js";
import { RehearsalCard } from "../compare/rehearsals.js";
import { address, ask, isAbort, session } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { count, percent } from "../parts/format.js";
import { KINDS, outcome, showJob, startJob } from "../parts/jobs.js";
import { announce, failure, notice, tell } from "../parts/messages.js";
import { go, openItem } from "../parts/place.js";
import { modelName, term } from "../parts/words.js";
import { tile } from "../search/tile.js";

const SHOWN = 12;

class CompareView {
  constructor(root, app) {
    this.app = app;
    this.collection = app.collection;
    this.stopping = new AbortController();
    this.words = h("input", { type: "search", name: "q", id: "compare-words", "data-search-box": true, placeholder: "A query for both search models", "aria-label": "Query", autocomplete: "off" });
    this.pickers = ["left", "right"].map((side) => h("select", { id: `compare-${side}`, "aria-label": `Search model ${side === "left" ? "one" : "two"}`, onchange: () => this.ask() }));
    this.form = h("form", { class: "compare-form", role: "search", onsubmit: (event) => this.ask(event) },
      this.words, h("button", { class: "primary" }, "Compare"),
      h("div", { class: "compare-choice" }, this.pickers[0], h("span", { class: "faint" }, "against"), this.pickers[1]));
    this.adding = h("div", { class: "compare-adding" });
    this.columns = h("div", { class: "compare-columns" });
    this.overlap = h("p", { class: "compare-overlap faint" });
    this.rehearsals = new RehearsalCard(app, this.stopping.signal);
    this.history = new HistoryCard(app, this.stopping.signal, () => this.loadRetrievers());
    root.append(h("div", { class: "compare" },
      h("div", { class: "page-head" }, h("h1", {}, "Compare"), h("p", {}, "The same query, answered by two ", term("search models"), ".")),
      this.form, this.overlap, this.columns, this.adding, this.history.element, this.rehearsals.element));
    this.ready = this.loadRetrievers();
  }

  close() {
    this.stopping.abort();
    this.asking?.abort();
  }

  async loadRetrievers() {
    try {
      const { retrievers, available } = await ask(address(this.collection.name, "retrievers"), { signal: this.stopping.signal });
      this.names = retrievers.map(({ name }) => name);
      this.pickers.forEach((picker, place) => {
        const before = picker.value;
        picker.replaceChildren(...retrievers.map(({ name, active, ready }) => h("option", { value: name, disabled: !ready }, `${name}${active ? " (in use)" : ""}`)));
        picker.value = this.names.includes(before) && before ? before : this.names[Math.min(place, this.names.length - 1)];
      });
      this.showAdding(available);
      this.history.show(retrievers);
      this.rehearsals.offer(retrievers);
    } catch (error) {
      if (!isAbort(error)) this.columns.replaceChildren(failure(error, () => this.loadRetrievers()));
    }
  }

  showAdding(available) {
    this.form.hidden = this.names.length < 2;
    if (session.read_only || !available.length) return this.adding.replaceChildren(this.names.length < 2 ? notice("One search model only", "Comparing needs a second one; whoever runs the service can add it.") : "");
    const picker = h("select", { id: "add-retriever", "aria-label": "Search model to add" }, available.map((name) => h("option", { value: name }, modelName(name))));
    const add = h("button", { type: "button", onclick: () => this.add(picker.value) }, "Add");
    if (this.names.length < 2) this.adding.replaceChildren(notice("One search model only", "Add a second one to compare. The one in use stays in use.", picker, add));
    else this.adding.replaceChildren(h("div", { class: "compare-add" }, h("label", { for: "add-retriever", class: "faint" }, "Another search model:"), picker, add));
  }

  async add(name) {
    try {
      const job = await startJob(this.collection.name, "retriever", { name });
      const panel = h("div", { class: "notice" });
      this.adding.replaceChildren(panel);
      const end = await showJob(panel, h("h2", {}, `${KINDS.retriever.title}: ${name}`), this.collection.name, job, this.stopping.signal);
      if (end?.state === "failed") tell(outcome(end), "error");
    } catch (error) {
      tell(error.message, "error");
    }
    if (!this.stopping.signal.aborted) await this.loadRetrievers();
  }

  async update({ params }) {
    const key = params.toString();
    if (key === this.key) return;
    this.key = key;
    // At once, not when the search models are known: by then somebody may be typing.
    this.words.value = params.get("q") ?? "";
    await this.ready;
    if (key !== this.key || !this.names) return;
    for (const [place, side] of ["left", "right"].entries()) {
      if (this.names.includes(params.get(side))) this.pickers[place].value = params.get(side);
    }
    if (this.words.value && this.names.length > 1) this.run();
    else this.columns.replaceChildren();
  }

  async ask(event) {
    event?.preventDefault();
    await this.ready;
    if (!this.words.value.trim() || !this.names) return;
    const params = new URLSearchParams(this.app.collections.length > 1 ? { c: this.collection.name } : {});
    params.set("q", this.words.value.trim());
    ["left", "right"].forEach((side, place) => params.set(side, this.pickers[place].value));
    go("/compare", params, { replace: this.key === params.toString() });
  }

  async run() {
    this.asking?.abort();
    this.asking = new AbortController();
    this.overlap.replaceChildren();
    this.columns.setAttribute("aria-busy", "true");
    const names = this.pickers.map((picker) => picker.value);
    if (names[0] === names[1]) return this.columns.replaceChildren(notice("The same search model twice", "Choose two different ones."));
    const search = (retriever) => ask(address(this.collection.name, "search"), {
      method: "POST", json: { query: this.words.value.trim(), retriever, limit: SHOWN }, signal: this.asking.signal,
    });
    try {
      this.draw(await Promise.all(names.map(search)), names);
    } catch (error) {
      if (!isAbort(error)) this.columns.replaceChildren(failure(error, () => this.run()));
    }
    this.columns.removeAttribute("aria-busy");
  }

  draw(pages, names) {
    const ids = pages.map((page) => new Set(page.answers.map(({ id }) => id)));
    const shared = (answer) => ids.every((set) => set.has(answer.id));
    const answers = pages.flatMap((page, side) => page.answers.map((answer) => ({ ...answer, side, retriever: names[side], position: answer.rank })));
    this.columns.replaceChildren(...pages.map((page, side) => h("section", { class: "compare-column", "aria-label": ["Left", "Right"][side] },
      h("div", { class: "compare-head" }, h("h2", {}, names[side]), h("p", { class: "faint" }, page.no_good_match ? "no good match" : `${count(page.answers.filter(({ good }) => good).length, "likely match", "likely matches")} (${percent(page.cutoff)} or more)`)),
      h("ol", { class: "compare-tiles" }, answers.filter((answer) => answer.side === side).map((answer) =>
        tile(this.collection.name, answer, { onOpen: (chosen) => this.open(chosen), marks: shared(answer) ? ["in both"] : [] }))))));
    this.app.list = {
      answers, asked: { query: this.words.value.trim(), target: "images" }, click: (answer, kind) => this.click(pages[answer.side].search_id, answer, kind),
      focus: (answer) => this.columns.children[answer.side]?.querySelector(`[data-id="${CSS.escape(answer.id)}"] .tile-link`)?.focus(),
    };
    const overlap = [...ids[0]].filter((id) => ids[1].has(id)).length;
    announce(`Two lists of ${SHOWN} results, ${overlap} in both`);
    this.overlap.textContent = `${overlap} of ${SHOWN} in both lists`;
  }

  click(searchId, answer, kind) {
    if (!searchId || !session.csrf) return;
    const click = { search_id: searchId, item: answer.id, position: answer.position, kind };
    ask(address(this.collection.name, "clicks"), { method: "POST", json: click, keepalive: true }).catch(() => {});
  }

  open(answer) {
    this.app.list.click(answer, "open");
    openItem(answer.id);
  }
}

export const open = (root, app) => new CompareView(root, app);
