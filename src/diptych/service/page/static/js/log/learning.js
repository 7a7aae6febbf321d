// What was learned from clicks: each step with its measures, a button to learn, and the way back.

import { address, ask, isAbort, session } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { percent, time } from "../parts/format.js";
import { isLive, KINDS, outcome, showJob, startJob } from "../parts/jobs.js";
import { beaten, headOf, measured, sentence, trafficTable } from "../parts/learning.js";
import { announce, confirm, failure, tell } from "../parts/messages.js";
import { thumbnail } from "../search/tile.js";

const SHOWN = 5;

export class LearningCard {
  constructor(app, signal, onChange) {
    this.app = app;
    this.onChange = onChange;
    this.collection = app.collection.name;
    this.signal = signal;
    this.actions = h("div", { class: "actions" });
    this.job = h("div", { class: "learning-job" });
    this.steps = h("div", { class: "job-list" });
    this.element = h("section", { class: "card", "aria-labelledby": "learning-title" }, h("h2", { id: "learning-title" }, "Learning from clicks"),
      h("p", { class: "faint" }, "Clicks, corrected for their positions, teach a search model. It takes over only if the later searches of other people are clearly answered better; the one before stays stored."),
      this.actions, this.job, this.steps);
    this.load();
    this.follow();
  }

  async load() {
    try {
      this.draw(await ask(address(this.collection, "learning"), { signal: this.signal }));
    } catch (error) {
      if (!isAbort(error)) this.steps.replaceChildren(failure(error, () => this.load()));
    }
  }

  draw({ steps: all, rolls_back_to: former }) {
    // Compare has the whole history of search models.
    const steps = all.filter(({ origin }) => origin === "clicks");
    const learn = h("button", { type: "button", onclick: (event) => this.learn(event.target) }, "Learn now");
    const back = former && all[0]?.origin === "clicks" && h("button", { type: "button", onclick: () => this.rollBack(former) }, `Roll back to ${former}`);
    this.actions.replaceChildren(...(session.read_only ? [] : [this.app.collection.log_clicks && learn, back].filter(Boolean)));
    this.steps.replaceChildren(...(steps.length ? steps.map((step) => this.step(step)) : [h("p", { class: "faint" }, "Nothing has been learned yet.")]));
  }

  step(step) {
    const told = [sentence(step.reason), measured(step)].filter(Boolean).join(" ");
    return h("article", { class: "job" },
      h("div", { class: "job-head" }, h("h3", {}, headOf(step)), h("p", { class: "faint" }, time(step.time))),
      told && h("p", {}, told), this.parts(step), trafficTable(step), this.changes(step));
  }

  parts(step) {
    const { action, parts } = step;
    const weights = Object.entries(parts).filter(([, weight]) => weight > 0);
    const whole = weights.reduce((sum, [, weight]) => sum + weight, 0);
    if (action !== "promoted" || !whole) return null;
    return h("ul", { class: "learned-parts", "aria-label": "What it is made of" }, weights.map(([name, weight]) => h("li", {},
      h("span", {}, name === "present" ? beaten(step) : name), h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width: `${(100 * weight) / whole}%` } })), h("span", { class: "score-number" }, percent(weight / whole)))));
  }

  changes(step) {
    const { gained, lost } = step;
    if (!gained.length && !lost.length) return null;
    const strips = [];
    const strip = (query, model) => {
      const place = h("span", { class: "strip", role: "img", "aria-label": `First pictures of ${model}` });
      strips.push(() => this.fill(place, query, model));
      return place;
    };
    const cell = (value, query, model) => h("td", {}, value.toFixed(3), step.action === "promoted" && strip(query, model));
    const row = ([query, before, after]) => h("tr", {}, h("th", { scope: "row" }, query), cell(before, query, step.before), cell(after, query, step.after));
    const group = (name, rows) => rows.length > 0 && h("tbody", {}, h("tr", {}, h("th", { scope: "rowgroup", colspan: 3, class: "faint" }, name)), rows.map(row));
    // The pictures are asked for when somebody wants to see them.
    return h("details", { ontoggle: () => strips.splice(0).forEach((fill) => fill()) }, h("summary", {}, "Queries that changed most"),
      h("div", { class: "table-scroll", tabindex: 0, role: "group", "aria-label": "Queries that changed most" },
        h("table", {}, h("thead", {}, h("tr", {}, ["Query", "Before", "After"].map((head) => h("th", { scope: "col" }, head)))), group("Gained", gained), group("Lost", lost))));
  }

  async fill(place, query, retriever) {
    const json = { query, retriever, limit: SHOWN, log: false };
    try {
      const { answers } = await ask(address(this.collection, "search"), { method: "POST", json, signal: this.signal });
      place.replaceChildren(...answers.map((answer) => thumbnail(this.collection, answer)));
    } catch (error) {
      // A search model that was removed since has no pictures to show any more.
      if (!isAbort(error)) place.remove();
    }
  }

  // A job that was started elsewhere, or before the page was opened, is shown as well.
  async follow() {
    const { jobs } = await ask(address(this.collection, "jobs"), { signal: this.signal }).catch(() => ({ jobs: [] }));
    const running = jobs.find((job) => job.kind === "learn" && isLive(job));
    if (running) await this.watch(running);
  }

  async learn(button) {
    button.disabled = true;
    try {
      await this.watch(await startJob(this.collection, "learn"));
    } catch (error) {
      tell(error.message, "error");
    }
    button.disabled = false;
  }

  async watch(job) {
    const end = await showJob(this.job, h("h3", {}, KINDS.learn.title), this.collection, job, this.signal);
    if (this.signal.aborted) return;
    this.job.replaceChildren(...(end?.state === "failed" ? [h("p", { class: "field-error" }, outcome(end))] : []));
    if (end) announce(`${KINDS.learn.title}: ${end.state}. ${outcome(end)}`);
    await this.changed();
  }

  // Other cards name the search models as well.
  async changed() {
    await this.app.refresh().catch(() => {});
    this.onChange();
    await this.load();
  }

  async rollBack(former) {
    if (!(await confirm(`Let searches use ${former} again? What was learned stays stored.`, "Roll back"))) return;
    try {
      await ask(address(this.collection, "learning", "rollback"), { method: "POST" });
      tell(`${former} is in use again.`);
      await this.changed();
    } catch (error) {
      tell(error.message, "error");
    }
  }
}
