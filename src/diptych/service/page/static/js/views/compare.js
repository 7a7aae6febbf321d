// The compare view: one query, two search models, side by side, and a vote.

import { HistoryCard } from "../compare/history.js";
import { RehearsalCard } from "../compare/rehearsals.js";
import { address, ask, isAbort, session } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { count, percent, pValue } from "../parts/format.js";
import { KINDS, outcome, showJob } from "../parts/jobs.js";
import { announce, failure, notice, tell } from "../parts/messages.js";
import { go, openItem } from "../parts/place.js";
import { modelName, term } from "../parts/words.js";
import { tile } from "../search/tile.js";

const SHOWN = 12;
const CHOICES = [["left", "Left is better"], ["both", "Both are good"], ["neither", "Neither"], ["right", "Right is better"]];

class CompareView {
  constructor(root, app) {
    this.app = app;
    this.collection = app.collection;
    this.stopping = new AbortController();
    this.words = h("input", { type: "search", name: "q", id: "compare-words", "data-search-box": true, placeholder: "A query for both search models", "aria-label": "Query", autocomplete: "off" });
    this.pickers = ["left", "right"].map((side) => h("select", { id: `compare-${side}`, "aria-label": `Search model ${side === "left" ? "one" : "two"}`, onchange: () => this.ask() }));
    this.blind = h("input", { type: "checkbox", role: "switch", onchange: () => this.ask() });
    this.form = h("form", { class: "compare-form", role: "search", onsubmit: (event) => this.ask(event) },
      this.words, h("button", { class: "primary" }, "Compare"),
      h("div", { class: "compare-choice" }, this.pickers[0], h("span", { class: "faint" }, "against"), this.pickers[1],
        h("label", { class: "switch" }, this.blind, h("span", {}, "Hide the names until I have voted"))));
    this.adding = h("div", { class: "compare-adding" });
    this.columns = h("div", { class: "compare-columns" });
    this.voting = h("div", { class: "compare-voting" });
    this.rehearsals = new RehearsalCard(app, this.stopping.signal);
    this.history = new HistoryCard(app, this.stopping.signal, () => this.loadRetrievers());
    this.tally = h("section", { class: "card", "aria-labelledby": "tally-title", hidden: true });
    root.append(h("div", { class: "compare" },
      h("div", { class: "page-head" }, h("h1", {}, "Compare"), h("p", {}, "The same query, answered by two ", term("search models"), ". Vote for the better answers; the count says when the difference is more than chance.")),
      this.form, this.voting, this.columns, this.tally, this.adding, this.history.element, this.rehearsals.element));
    this.ready = this.loadRetrievers();
    this.showTally();
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
      const job = await ask(address(this.collection.name, "retrievers"), { method: "POST", json: { name } });
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
    this.blind.checked = params.get("blind") === "1";
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
    if (this.blind.checked) params.set("blind", "1");
    go("/compare", params, { replace: this.key === params.toString() });
  }

  async run() {
    this.asking?.abort();
    this.asking = new AbortController();
    this.voting.replaceChildren();
    this.columns.setAttribute("aria-busy", "true");
    const names = this.pickers.map((picker) => picker.value);
    if (names[0] === names[1]) return this.columns.replaceChildren(notice("The same search model twice", "Choose two different ones."));
    // Whoever sees no names should not guess them from the side either.
    if (this.blind.checked && Math.random() < 0.5) names.reverse();
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
    this.titles = names.map((name, side) => h("h2", {}, this.blind.checked ? ["Left", "Right"][side] : name));
    this.columns.replaceChildren(...pages.map((page, side) => h("section", { class: "compare-column", "aria-label": ["Left", "Right"][side] },
      h("div", { class: "compare-head" }, this.titles[side], h("p", { class: "faint" }, page.no_good_match ? "no good match" : `${count(page.answers.filter(({ good }) => good).length, "likely match", "likely matches")} (${percent(page.cutoff)} or more)`)),
      h("ol", { class: "compare-tiles" }, answers.filter((answer) => answer.side === side).map((answer) =>
        tile(this.collection.name, answer, { onOpen: (chosen) => this.open(chosen), marks: shared(answer) ? ["in both"] : [] }))))));
    this.app.list = {
      answers, asked: { query: this.words.value.trim(), target: "images" }, click: (answer, kind) => this.click(pages[answer.side].search_id, answer, kind),
      focus: (answer) => this.columns.children[answer.side]?.querySelector(`[data-id="${CSS.escape(answer.id)}"] .tile-link`)?.focus(),
    };
    const overlap = [...ids[0]].filter((id) => ids[1].has(id)).length;
    announce(`Two lists of ${SHOWN} results, ${overlap} in both`);
    this.showVoting(pages, names, overlap);
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

  showVoting(pages, names, overlap) {
    const remark = h("p", { class: "faint" }, `${overlap} of ${SHOWN} in both lists`);
    if (!pages.every((page) => page.search_id)) return this.voting.replaceChildren(remark, h("p", { class: "faint" }, "Votes are kept in the click log, which is off."));
    if (!session.csrf) return this.voting.replaceChildren(remark);
    const buttons = CHOICES.map(([choice, label]) => h("button", { type: "button", onclick: () => this.vote(pages, names, choice) }, label));
    this.voting.replaceChildren(h("div", { class: "actions", role: "group", "aria-label": "Vote" }, buttons), remark);
  }

  async vote(pages, names, choice) {
    try {
      await ask(address(this.collection.name, "votes"), { method: "POST", json: { left: pages[0].search_id, right: pages[1].search_id, choice } });
      this.titles.forEach((title, side) => { title.textContent = names[side]; });
      this.voting.replaceChildren(h("p", { tabindex: -1 }, "Thank you. ", h("span", { class: "faint" }, `Left is ${names[0]}, right is ${names[1]}.`)));
      this.voting.firstChild.focus();
      this.showTally();
    } catch (error) {
      tell(error.message, "error");
    }
  }

  async showTally() {
    const { pairs } = await ask(address(this.collection.name, "votes"), { signal: this.stopping.signal }).catch(() => ({ pairs: [] }));
    this.tally.hidden = !pairs.length;
    this.tally.replaceChildren(h("h2", { id: "tally-title" }, "Votes so far"), h("ul", { class: "tally" }, pairs.map((pair) => this.pair(pair))));
  }

  pair({ left, right, left_wins: one, right_wins: other, both, neither, p_value: p }) {
    const all = Math.max(1, one + other);
    const verdict = p < 0.05 ? `${one > other ? left : right} is preferred` : "no clear difference yet";
    return h("li", {},
      h("p", {}, h("strong", {}, left), ` ${one} : ${other} `, h("strong", {}, right)),
      h("span", { class: "tally-bar", "aria-hidden": "true" }, h("span", { class: "tally-left", style: { width: `${(100 * one) / all}%` } }), h("span", { class: "tally-right", style: { width: `${(100 * other) / all}%` } })),
      h("p", { class: "faint" }, `${verdict} (${pValue(p)}, `, term("sign test"), `); both good ${both}, neither ${neither}`));
  }
}

export const open = (root, app) => new CompareView(root, app);
