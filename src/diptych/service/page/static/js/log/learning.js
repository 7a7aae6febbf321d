// What was learned from clicks: each step with its measures, a button to learn, and the way back.

import { address, ask, isAbort, session } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { percent, time } from "../parts/format.js";
import { cancelJob, isLive, KINDS, outcome, progress, startJob, watchJob } from "../parts/jobs.js";
import { beaten, headOf, measured, sentence } from "../parts/learning.js";
import { announce, confirm, failure, tell } from "../parts/messages.js";

export class LearningCard {
  constructor(app, signal) {
    this.app = app;
    this.collection = app.collection.name;
    this.signal = signal;
    this.actions = h("div", { class: "actions" });
    this.job = h("div", { class: "learning-job" });
    this.steps = h("div", { class: "job-list" });
    this.element = h("section", { class: "card", "aria-labelledby": "learning-title" }, h("h2", { id: "learning-title" }, "Learning from clicks"),
      h("p", { class: "faint" }, "Clicks, corrected for their positions, teach a retriever. It takes over only if it answers held-out queries significantly better; the one before stays stored."),
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

  draw({ steps, rolls_back_to: former }) {
    const learn = h("button", { type: "button", onclick: (event) => this.learn(event.target) }, "Learn now");
    const back = former && h("button", { type: "button", onclick: () => this.rollBack(former) }, `Roll back to ${former}`);
    this.actions.replaceChildren(...(session.read_only ? [] : [this.app.collection.log_clicks && learn, back].filter(Boolean)));
    this.steps.replaceChildren(...(steps.length ? steps.map((step) => this.step(step)) : [h("p", { class: "faint" }, "Nothing has been learned yet.")]));
  }

  step(step) {
    const told = [sentence(step.reason), measured(step)].filter(Boolean).join(" ");
    return h("article", { class: "job" },
      h("div", { class: "job-head" }, h("h3", {}, headOf(step)), h("p", { class: "faint" }, time(step.time))),
      told && h("p", {}, told), this.parts(step), this.changes(step));
  }

  parts(step) {
    const { action, parts } = step;
    const weights = Object.entries(parts).filter(([, weight]) => weight > 0);
    const whole = weights.reduce((sum, [, weight]) => sum + weight, 0);
    if (action !== "promoted" || !whole) return null;
    return h("ul", { class: "learned-parts", "aria-label": "What it is made of" }, weights.map(([name, weight]) => h("li", {},
      h("span", {}, name === "present" ? beaten(step) : name), h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width: `${(100 * weight) / whole}%` } })), h("span", { class: "score-number" }, percent(weight / whole)))));
  }

  changes({ gained, lost }) {
    if (!gained.length && !lost.length) return null;
    const row = ({ query, before, after }) => h("tr", {}, h("th", { scope: "row" }, query), h("td", {}, before.toFixed(3)), h("td", {}, after.toFixed(3)));
    const group = (name, rows) => rows.length > 0 && h("tbody", {}, h("tr", {}, h("th", { scope: "rowgroup", colspan: 3, class: "faint" }, name)), rows.map(row));
    return h("details", {}, h("summary", {}, "Queries that changed most"),
      h("div", { class: "table-scroll", tabindex: 0, role: "group", "aria-label": "Queries that changed most" },
        h("table", {}, h("thead", {}, h("tr", {}, ["Query", "Before", "After"].map((head) => h("th", { scope: "col" }, head)))), group("Gained", gained), group("Lost", lost))));
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
    const stop = h("button", { type: "button", onclick: () => cancelJob(this.collection, job.id).catch((error) => tell(error.message, "error")) }, "Cancel");
    const end = await watchJob(this.collection, job, (news) => this.job.replaceChildren(h("h3", {}, KINDS.learn.title), progress(news), stop), this.signal);
    if (this.signal.aborted) return;
    this.job.replaceChildren(...(end?.state === "failed" ? [h("p", { class: "field-error" }, outcome(end))] : []));
    if (end) announce(`${KINDS.learn.title}: ${end.state}. ${outcome(end)}`);
    await this.app.refresh().catch(() => {});
    await this.load();
  }

  async rollBack(former) {
    if (!(await confirm(`Let searches use ${former} again? What was learned stays stored.`, "Roll back"))) return;
    try {
      await ask(address(this.collection, "learning", "rollback"), { method: "POST" });
      tell(`${former} is in use again.`);
      await this.app.refresh().catch(() => {});
      await this.load();
    } catch (error) {
      tell(error.message, "error");
    }
  }
}
