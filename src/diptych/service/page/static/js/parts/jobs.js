// Jobs: starting them, and watching them to their end.

import { address, ask, isAbort } from "./api.js";
import { h } from "./dom.js";
import { count, duration, number, pValue, time } from "./format.js";
import { learned } from "./learning.js";

const LIVE = new Set(["waiting", "running"]);
const PAUSE = 700;
const STATES = { waiting: "waiting", running: "running", done: "done", failed: "failed", cancelled: "cancelled", interrupted: "interrupted" };

export const KINDS = {
  index: { title: "Index the folder", what: "Reads what is new or changed in the collection's folder, and forgets what is gone." },
  train: { title: "Train on the captions", what: "Learns from this collection's own captions or labels, measures whether that helps, and takes over only if it does." },
  learn: { title: "Learn from clicks", what: "Learns from what people clicked, measures on held-out queries whether that helps, and takes over only if it does." },
  reencode: { title: "Re-encode", what: "Finishes a change of retriever that was begun: every picture and caption gets its new point." },
  map: { title: "Make a map", what: "Draws pictures and captions in two dimensions, similar ones close to each other." },
  rehearse: { title: "Try another search model", what: "Answers this collection's own captions and logged queries with another retriever beside the one in use. A sample of the pictures is encoded for it; nothing is changed." },
  retriever: { title: "Add a retriever", what: "Makes points with another retriever, beside those of the active one." },
};

export const isLive = (job) => LIVE.has(job.state);

export const startJob = (collection, kind, parameters = {}) =>
  ask(address(collection, "jobs"), { method: "POST", json: { kind, parameters } });

export const cancelJob = (collection, id) => ask(address(collection, "jobs", id), { method: "DELETE" });

// Calls back with every news of a job until it has ended.
export async function watchJob(collection, job, onNews, signal) {
  let news = job;
  while (isLive(news) && !signal.aborted) {
    onNews(news);
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    try {
      news = await ask(address(collection, "jobs", job.id), { signal });
    } catch (error) {
      if (isAbort(error) || error.status === 404) return null;
    }
  }
  if (signal.aborted) return null;
  onNews(news);
  return news;
}

function pace(job) {
  const seconds = (Date.now() - new Date(job.started)) / 1000;
  if (!job.started || !job.done || seconds < 1) return "";
  const rate = job.done / seconds;
  const left = job.total > job.done ? `, about ${duration((job.total - job.done) / rate)} left` : "";
  return `${number(Number(rate.toPrecision(2)))} per second${left}`;
}

export function progress(job) {
  const share = job.total ? Math.min(1, job.done / job.total) : null;
  const fill = h("span", { class: "job-fill", style: share === null ? {} : { width: `${(100 * share).toFixed(1)}%` } });
  const bar = h("span", {
    class: `job-bar ${share === null ? "unknown" : ""}`, role: "progressbar", "aria-label": KINDS[job.kind]?.title ?? job.kind,
    "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": share === null ? null : Math.round(100 * share),
  }, fill);
  const amounts = job.total ? `${number(job.done)} of ${number(job.total)}` : "";
  const words = [job.state === "waiting" ? "waiting for another job" : job.message, amounts, pace(job)].filter(Boolean).join(" · ");
  return h("div", { class: "job-progress" }, bar, h("p", { class: "faint" }, words || "starting"));
}

function trained({ activated, retriever, comparison }) {
  const verdict = activated ? `The new retriever, ${retriever}, is in use now.` : "The present retriever stays, because the new one is not better.";
  const { old: before, new: after, n_held_out: pictures, p_value: p } = comparison;
  const tested = `On ${count(pictures, "held-out picture")}, the new one has a mean average precision of ${after.toFixed(3)}`;
  if (typeof before !== "number") return `${verdict} ${tested}.`;
  const luck = typeof p !== "number" ? "" : `, a difference that is ${p < 0.05 ? "statistically significant" : "not statistically significant"} (${pValue(p)})`;
  return `${verdict} ${tested}, the one before ${before.toFixed(3)}${luck}.`;
}

const WORDS = {
  added: "added", updated: "updated", renamed: "renamed", unchanged: "unchanged", removed: "removed", skipped: "skipped",
  pictures: "pictures", captions: "captions", items_in_map: "items on the map",
};

export function outcome(job) {
  if (job.state === "failed") return job.error ?? "It failed without saying why.";
  if (job.state === "interrupted") return "The service stopped before it was done; start it again, it goes on from there.";
  if (job.state === "cancelled") return "Cancelled; what was done is kept.";
  if (!job.result) return job.message ?? "";
  if (job.kind === "learn") return learned(job.result.record);
  if (job.kind === "train") return trained(job.result);
  if (job.kind === "rehearse") return job.result.verdict.map((sentence) => `${sentence}.`).join(" ");
  const counted = Object.entries(job.result).filter(([name, value]) => WORDS[name] && value);
  const told = counted.map(([name, value]) => `${number(value)} ${WORDS[name]}`).join(", ") || "Nothing had to be done.";
  return job.kind === "retriever" ? `${job.parameters.name}: ${told}` : told;
}

export function jobLine(job) {
  const took = job.started && job.finished ? `took ${duration((new Date(job.finished) - new Date(job.started)) / 1000)}` : "";
  return [STATES[job.state] ?? job.state, time(job.created), took].filter(Boolean).join(" · ");
}
