// The jobs view: what is running, what can be started, what was done.

import { address, ask, isAbort, session } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { announce, failure, tell } from "../parts/messages.js";
import { cancelJob, details, isLive, jobLine, KINDS, outcome, progress, startJob, watchJob } from "../parts/jobs.js";

const STARTED_HERE = ["index", "train", "learn", "reencode", "map", "read_text", "regions"];
// News of the job that runs are streamed; only jobs that are started elsewhere have to be looked for.
const PAUSE = 5000;

class JobsView {
  constructor(root, app) {
    this.app = app;
    this.collection = app.collection.name;
    this.stopping = new AbortController();
    this.running = h("div", { class: "job-list" });
    this.past = h("div", { class: "job-list" });
    root.append(h("div", { class: "page" },
      h("div", { class: "page-head" }, h("h1", {}, "Jobs"), h("p", {}, "Jobs run in the background and can be cancelled at any time; what is done is kept.")),
      h("section", { class: "card", "aria-labelledby": "running-title" }, h("h2", { id: "running-title" }, "Running"), this.running),
      session.read_only ? null : this.starts(),
      h("section", { class: "card", "aria-labelledby": "past-title" }, h("h2", { id: "past-title" }, "Finished"), this.past)));
    this.look();
  }

  update() {}

  close() {
    this.stopping.abort();
    clearTimeout(this.timer);
  }

  starts() {
    return h("section", { class: "card", "aria-labelledby": "start-title" }, h("h2", { id: "start-title" }, "Start"),
      h("div", { class: "job-starts" }, STARTED_HERE.map((kind) => h("div", { class: "job-start" },
        h("div", {}, h("h3", {}, KINDS[kind].title), h("p", { class: "faint" }, KINDS[kind].what)),
        h("button", { type: "button", "aria-label": `Start: ${KINDS[kind].title}`, onclick: (event) => this.start(event.target, kind) }, "Start")))));
  }

  async start(button, kind) {
    button.disabled = true;
    try {
      await startJob(this.collection, kind, kind === "index" ? { remove_missing: true } : {});
      tell(`${KINDS[kind].title}: started.`);
      await this.look();
    } catch (error) {
      tell(error.message, "error");
    }
    button.disabled = false;
  }

  async look() {
    clearTimeout(this.timer);
    try {
      const { jobs } = await ask(address(this.collection, "jobs"), { signal: this.stopping.signal });
      const live = jobs.filter(isLive);
      this.draw(live, jobs.filter((job) => !isLive(job)));
      this.follow(live.at(-1));
    } catch (error) {
      if (isAbort(error)) return;
      this.running.replaceChildren(failure(error, () => this.look()));
    }
    if (!this.stopping.signal.aborted) this.timer = setTimeout(() => this.look(), PAUSE);
  }

  // They run one after the other, so the oldest is the one that runs, or that will run next.
  async follow(job) {
    if (!job || job.id === this.followed) return;
    this.followed = job.id;
    const renew = (news) => this.running.querySelector(`[data-job="${job.id}"] .job-progress`)?.replaceWith(progress(news));
    await watchJob(this.collection, job, renew, this.stopping.signal);
    if (!this.stopping.signal.aborted) await this.look();
  }

  draw(live, past) {
    const ended = (this.live ?? []).filter((id) => past.some((job) => job.id === id));
    for (const id of ended) this.ended(past.find((job) => job.id === id));
    this.live = live.map(({ id }) => id);
    this.drawLive(live);
    const key = JSON.stringify(past);
    if (key !== this.pastKey) this.past.replaceChildren(...(past.length ? past.map((job) => this.pastJob(job)) : [h("p", { class: "faint" }, "No job has run yet.")]));
    this.pastKey = key;
  }

  // Cards are kept and only their progress is renewed, so that the focus stays on a "cancel" button.
  drawLive(live) {
    const kept = new Map([...this.running.children].map((card) => [card.dataset.job, card]));
    const cards = live.map((job) => {
      const card = kept.get(job.id) ?? this.liveJob(job);
      card.querySelector(".job-progress").replaceWith(progress(job));
      return card;
    });
    const same = cards.length && cards.length === this.running.children.length && cards.every((card, place) => this.running.children[place] === card);
    if (!same) this.running.replaceChildren(...(cards.length ? cards : [h("p", { class: "faint" }, "Nothing is running.")]));
  }

  liveJob(job) {
    return h("article", { class: "job", "data-job": job.id },
      h("div", { class: "job-head" }, h("h3", {}, KINDS[job.kind]?.title ?? job.kind),
        !session.read_only && h("button", { type: "button", "aria-label": `Cancel: ${KINDS[job.kind]?.title ?? job.kind}`, onclick: (event) => this.cancel(event.target, job) }, "Cancel")),
      progress(job));
  }

  pastJob(job) {
    return h("article", { class: `job ${job.state}` },
      h("div", { class: "job-head" }, h("h3", {}, KINDS[job.kind]?.title ?? job.kind), h("p", { class: "faint" }, jobLine(job))),
      h("p", {}, outcome(job)), details(job));
  }

  ended(job) {
    announce(`${KINDS[job.kind]?.title ?? job.kind}: ${job.state}. ${outcome(job)}`);
    this.app.refresh().catch(() => {});
  }

  async cancel(button, job) {
    button.disabled = true;
    try {
      await cancelJob(this.collection, job.id);
      await this.look();
    } catch (error) {
      button.disabled = false;
      tell(error.message, "error");
    }
  }
}

export const open = (root, app) => new JobsView(root, app);
