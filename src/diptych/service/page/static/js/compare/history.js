// The search models of a collection: those that are stored, what replaced which and why, and the way back.

import { address, ask, isAbort, session } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { time } from "../parts/format.js";
import { gateTable, headOf, measured, ORIGINS, sentence } from "../parts/learning.js";
import { confirm, failure, tell } from "../parts/messages.js";

const SHOWN = 5;

export class HistoryCard {
  constructor(app, signal, onChange) {
    this.app = app;
    this.collection = app.collection.name;
    this.signal = signal;
    this.onChange = onChange;
    this.models = h("ul", { class: "stored-models", "aria-label": "Stored search models" });
    this.back = h("div", { class: "actions" });
    this.steps = h("div", { class: "job-list" });
    this.element = h("section", { class: "card", "aria-labelledby": "history-title" }, h("h2", { id: "history-title" }, "Search models and their history"),
      h("p", { class: "faint" }, "One search model is in use. The one before stays stored, so that going back costs nothing; of older ones the last three do."),
      this.models, h("h3", {}, "History"), this.back, this.steps);
    this.load();
  }

  // Called with the search models whenever they are known anew.
  show(retrievers) {
    this.models.replaceChildren(...retrievers.map(({ name, active, kind }) => h("li", {},
      h("span", {}, h("strong", {}, name), kind && h("span", { class: "faint" }, ` ${kind}`), active && h("span", { class: "tag" }, "in use")),
      !active && !session.read_only && h("span", { class: "actions" },
        h("button", { type: "button", "aria-label": `Use ${name}`, onclick: () => this.use(name) }, "Use"),
        h("button", { type: "button", class: "danger-word", "aria-label": `Remove ${name}`, onclick: () => this.remove(name) }, "Remove")))));
  }

  async load() {
    // What people typed is for those who are signed in, and some steps name it.
    if (!session.csrf) return;
    try {
      this.draw(await ask(address(this.collection, "learning"), { signal: this.signal }));
    } catch (error) {
      if (!isAbort(error)) this.steps.replaceChildren(failure(error, () => this.load()));
    }
  }

  draw({ steps, rolls_back_to: former }) {
    const back = former && !session.read_only && h("button", { type: "button", onclick: () => this.rollBack(former) }, `Go back to ${former}`);
    this.back.replaceChildren(...[back].filter(Boolean));
    const [recent, older] = [steps.slice(0, SHOWN), steps.slice(SHOWN)].map((some) => some.map((step) => this.step(step)));
    const rest = older.length ? [h("details", {}, h("summary", {}, `${older.length} older`), h("div", { class: "job-list" }, older))] : [];
    this.steps.replaceChildren(...(steps.length ? [...recent, ...rest] : [h("p", { class: "faint" }, "The search model has not been changed yet.")]));
  }

  step(step) {
    const told = [sentence(step.reason), step.gate.advice && step.action === "kept" && sentence(step.gate.advice), measured(step)].filter(Boolean).join(" ");
    return h("article", { class: "job" },
      h("div", { class: "job-head" }, h("h4", {}, headOf(step)), h("p", { class: "faint" }, `${ORIGINS[step.origin]} · ${time(step.time)}`)),
      told && h("p", {}, told), gateTable(step));
  }

  rollBack(former) {
    return this.change(`Let searches use ${former} again? The present search model stays stored.`, "Go back", ["learning", "rollback"], "POST", `${former} is in use again.`);
  }

  use(name) {
    return this.change(`Let searches use ${name} from now on? The present search model stays stored.`, "Use", ["retrievers", name, "activate"], "POST", `${name} is in use now.`);
  }

  remove(name) {
    return this.change(`Remove ${name} from the collection? To have it again, it has to read every picture again.`, "Remove", ["retrievers", name], "DELETE", `${name} is removed.`);
  }

  async change(question, verb, path, method, done) {
    if (!(await confirm(question, verb))) return;
    try {
      await ask(address(this.collection, ...path), { method });
      tell(done);
      await this.app.refresh().catch(() => {});
      await this.onChange();
      await this.load();
    } catch (error) {
      tell(error.message, "error");
    }
  }
}
