// Trying another search model on the collection's own questions: a button, its progress, and what was won and lost.

import { address, ask, isAbort, session } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { count, duration, percent, pValue, time } from "../parts/format.js";
import { isLive, KINDS, outcome, showJob, startJob } from "../parts/jobs.js";
import { announce, failure, tell } from "../parts/messages.js";
import { addressOf, itemPath, openItem, readPlace } from "../parts/place.js";
import { modelName, term } from "../parts/words.js";
import { thumbnail } from "../search/tile.js";

const SHIPPED = ["default", "strong"];
const SHOWN = 6;
const TITLES = { captions: "Captions", queries: "Logged queries" };

const place = (rank) => (Number.isInteger(rank) ? rank : rank.toFixed(1));
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;

export class RehearsalCard {
  constructor(app, signal) {
    this.app = app;
    this.collection = app.collection.name;
    this.signal = signal;
    this.choice = h("div", { class: "compare-add" });
    this.job = h("div", { class: "learning-job" });
    this.reports = h("div", { class: "rehearsals" });
    this.element = h("section", { class: "card", "aria-labelledby": "rehearsal-title", hidden: true }, h("h2", { id: "rehearsal-title" }, KINDS.rehearse.title),
      h("p", { class: "faint" }, KINDS.rehearse.what), this.choice, this.job, this.reports);
    this.load();
    this.follow();
  }

  // Called with the search models whenever they are known anew.
  offer(retrievers) {
    const active = retrievers.find(({ active }) => active)?.name;
    const stored = retrievers.filter(({ active, ready }) => ready && !active).map(({ name }) => name);
    const names = [...new Set([...SHIPPED.filter((name) => name !== active), ...stored])];
    // A collection keeps the search model it was made with; this version may have a newer one of that name.
    const same = SHIPPED.includes(active) ? [h("option", { value: active }, `${active}, as this version has it`)] : [];
    const picker = h("select", { id: "rehearse-retriever", "aria-label": "Search model to try" }, names.map((name) => h("option", { value: name }, modelName(name))), same);
    const button = h("button", { type: "button", onclick: () => this.start(button, picker.value) }, KINDS.rehearse.title);
    this.choice.replaceChildren(...(session.read_only ? [] : [picker, button]));
    this.element.hidden = session.read_only && !this.reports.children.length;
  }

  async load() {
    // What people typed is for those who are signed in.
    if (!session.csrf) return;
    try {
      const { rehearsals } = await ask(address(this.collection, "rehearsals"), { signal: this.signal });
      this.reports.replaceChildren(...rehearsals.map((report, place) => this.report(report, place === 0 && this.justEnded)));
      this.element.hidden = this.element.hidden && !rehearsals.length;
    } catch (error) {
      if (!isAbort(error)) this.reports.replaceChildren(failure(error, () => this.load()));
    }
  }

  async follow() {
    const { jobs } = await ask(address(this.collection, "jobs"), { signal: this.signal }).catch(() => ({ jobs: [] }));
    const running = jobs.find((job) => job.kind === "rehearse" && isLive(job));
    if (running) await this.watch(running);
  }

  async start(button, retriever) {
    button.disabled = true;
    try {
      await this.watch(await startJob(this.collection, "rehearse", { retriever }));
    } catch (error) {
      tell(error.message, "error");
    }
    button.disabled = false;
  }

  async watch(job) {
    const end = await showJob(this.job, h("h3", {}, job.parameters.retriever), this.collection, job, this.signal);
    if (this.signal.aborted) return;
    this.job.replaceChildren(...(end?.state === "failed" ? [h("p", { class: "field-error" }, outcome(end))] : []));
    if (end) announce(`${KINDS.rehearse.title}: ${end.state}. ${outcome(end)}`);
    this.justEnded = end?.state === "done";
    await this.load();
  }

  report(report, open) {
    const left = report.overlap === null ? null : `${count(report.n_unjudged, "logged query", "logged queries")} without a clicked picture here: of the first ten answers, both have ${percent(report.overlap)} in common.`;
    const takes = report.reads_pictures
      ? `Encoding ${count(report.n_pictures, "picture")} and ${count(report.n_captions, "caption")} for ${report.new} would take about ${duration(report.reencode_seconds)} on this machine.`
      : "Changing over reads no picture again.";
    return h("details", { class: "rehearsal", open },
      h("summary", {}, h("strong", {}, `${report.new} instead of ${report.old}?`), ` ${time(report.made)}`),
      report.verdict.map((sentence) => h("p", { class: `verdict ${report.outcome}` }, `${sentence}.`)),
      h("p", { class: "faint" }, [`Both ranked ${report.sampled}; nothing was changed.`, left, takes].filter(Boolean).join(" ")),
      report.questions.map((group) => this.group(report, group)),
      report.notes.length > 0 && h("div", {}, h("h3", {}, "Good to know"), h("ul", { class: "rehearsal-notes" }, report.notes.map((note) => h("li", {}, note)))));
  }

  group(report, group) {
    const rows = group.differences.map((one) => [one.measure, one.old.toFixed(3), one.new.toFixed(3), `${signed(one.low)} to ${signed(one.high)}`, pValue(one.p_value)]);
    rows.push(["“no good match”", percent(group.no_match_old), percent(group.no_match_new), "", ""]);
    const heads = [`${TITLES[group.kind]} (${group.n_questions})`, report.old, report.new, term("95% range"), term("By chance")];
    return h("div", { class: "rehearsal-group" },
      h("div", { class: "table-scroll", tabindex: 0, role: "group", "aria-label": `${TITLES[group.kind]}: measures` },
        h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
          h("tbody", {}, rows.map(([name, ...values]) => h("tr", {}, h("th", { scope: "row" }, name), values.map((value) => h("td", {}, value))))))),
      this.changes(report, `Won: ${group.n_won}`, group.won), this.changes(report, `Lost: ${group.n_lost}`, group.lost));
  }

  changes(report, title, questions) {
    return h("div", {}, h("h3", {}, title), questions.length === 0 && h("p", { class: "faint" }, "None."), questions.map((question) => this.question(report, question)));
  }

  question(report, question) {
    const asked = question.asked > 1 ? `, asked ${question.asked} times` : "";
    const shown = [question.old_answers, question.new_answers].map((ids) => ids.slice(0, SHOWN));
    const missed = !question.right.some((id) => shown.flat().includes(id));
    const side = (name, ids) => h("div", {}, h("h4", {}, name), this.strip(name, ids, question.right));
    return h("article", { class: "rehearsal-question" },
      h("p", {}, h("strong", {}, question.text), h("span", { class: "faint" }, ` place ${place(question.old_rank)} → ${place(question.new_rank)}${asked}`)),
      h("div", { class: "rehearsal-sides" }, side(report.old, shown[0]), side(report.new, shown[1])),
      missed && h("div", { class: "rehearsal-missed" }, side("Neither shows it here", question.right.slice(0, 1))));
  }

  strip(name, ids, right) {
    return h("ol", { class: "rehearsal-answers" }, ids.map((id, number) => {
      const isRight = right.includes(id);
      const open = (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
        event.preventDefault();
        openItem(id);
      };
      return h("li", { class: isRight ? "right" : "" },
        h("a", { href: addressOf(itemPath(id), readPlace().params), "aria-label": `${name}, answer ${number + 1}${isRight ? ", right" : ""}`, onclick: open },
          thumbnail(this.collection, { id, picture: true }), isRight && h("span", { class: "right-mark", "aria-hidden": "true" }, "✓")));
    }));
  }
}
