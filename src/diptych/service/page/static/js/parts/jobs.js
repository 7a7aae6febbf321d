// Jobs: starting them, and watching them to their end.

import { address, ask, isAbort } from "./api.js";
import { h } from "./dom.js";
import { duration, number, time } from "./format.js";
import { gateTable, learned, measured, sentence } from "./learning.js";
import { tell } from "./messages.js";

const LIVE = new Set(["waiting", "running"]);
const PAUSE = 700;
const STATES = { waiting: "waiting", running: "running", done: "done", failed: "failed", cancelled: "cancelled", interrupted: "interrupted" };

export const KINDS = {
  index: { title: "Index the folder", what: "Reads what is new or changed in the collection's folder, and removes what is gone." },
  train: { title: "Train on the captions", what: "Learns from this collection's own captions or labels. Pictures that were kept back decide: it takes over only if it finds them better by more than luck and forgets nothing else. Compare has the way back." },
  learn: { title: "Learn from clicks", what: "Learns from what people clicked, measures on held-out queries whether that helps, and takes over only if it does." },
  reencode: { title: "Finish a change of search model", what: "Goes on where a change was interrupted, until the new search model has read every picture and caption." },
  map: { title: "Make a map", what: "Draws pictures and captions in two dimensions, similar ones close to each other." },
  rehearse: { title: "Try another search model", what: "Answers this collection's own captions and logged queries with another search model beside the one in use. It reads a sample of the pictures; nothing is changed." },
  read_text: { title: "Read text in pictures", what: "Reads the words on signs, screenshots and receipts, each picture once and in the background, so that searches find them." },
  regions: { title: "Look for small things", what: "Looks at thirteen parts of each picture, in the background, so that searches find small things and show where they are. It takes thirteen times as long as indexing." },
  retriever: { title: "Add a search model", what: "Reads every picture with another search model, which can then be compared with the one in use." },
};

export const isLive = (job) => LIVE.has(job.state);

export const startJob = (collection, kind, parameters = {}) =>
  ask(address(collection, "jobs"), { method: "POST", json: { kind, ...parameters } });

export const cancelJob = (collection, id) => ask(address(collection, "jobs", id), { method: "DELETE" });

// Calls back with every news of a job until it has ended. News are sent as they come; where the stream breaks, or nobody
// looks and the browser could use the connection for another page, they are asked for.
export async function watchJob(collection, job, onNews, signal) {
  onNews(job);
  let news = await streamed(collection, job, onNews, signal);
  while (isLive(news) && !signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    try {
      news = await ask(address(collection, "jobs", job.id), { signal });
      onNews(news);
    } catch (error) {
      if (isAbort(error) || error.status === 404) return null;
    }
  }
  return signal.aborted ? null : news;
}

function streamed(collection, job, onNews, signal) {
  if (!isLive(job) || document.hidden || signal.aborted) return job;
  return new Promise((resolve) => {
    let last = job;
    const source = new EventSource(address(collection, "jobs", job.id, "events"));
    const stopping = new AbortController();
    const end = () => {
      source.close();
      stopping.abort();
      resolve(last);
    };
    source.onmessage = ({ data }) => {
      last = JSON.parse(data);
      onNews(last);
      if (!isLive(last)) end();
    };
    source.onerror = end;
    signal.addEventListener("abort", end, { signal: stopping.signal });
    document.addEventListener("visibilitychange", end, { signal: stopping.signal });
  });
}

// Shows a job in a place until it has ended, with a button to cancel it; only the progress is renewed, so that the focus
// stays on the button.
export function showJob(place, heading, collection, job, signal) {
  const news = h("div", { class: "job-news" });
  const stop = h("button", { type: "button", onclick: () => cancelJob(collection, job.id).catch((error) => tell(error.message, "error")) }, "Cancel");
  place.replaceChildren(heading, news, stop);
  return watchJob(collection, job, (state) => news.replaceChildren(progress(state)), signal);
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

function trained({ activated, retriever, before, reason, comparison }) {
  const verdict = activated ? `${retriever} is in use now; Compare has the way back to ${before}.` : `${before ?? "The present search model"} stays.`;
  const numbers = { ...comparison, measure: "MAP", before: comparison.baseline, origin: "captions" };
  return [verdict, sentence(reason), measured(numbers), activated ? "" : sentence(comparison.advice)].filter(Boolean).join(" ");
}

const WORDS = {
  added: "added", updated: "updated", renamed: "renamed", unchanged: "unchanged", described: "described", removed: "removed", skipped: "skipped",
  read: "pictures read", with_text: "with text", pictures: "pictures", captions: "captions", items_in_map: "items on the map",
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
  const noted = [told, ...(job.result.notes ?? [])].join("; ");
  return job.kind === "retriever" ? `${job.parameters.name}: ${noted}` : noted;
}

export const details = (job) => (job.kind === "train" && job.result ? gateTable({ gate: job.result.comparison }) : null);

export function jobLine(job) {
  const took = job.started && job.finished ? `took ${duration((new Date(job.finished) - new Date(job.started)) / 1000)}` : "";
  return [STATES[job.state] ?? job.state, time(job.created), took].filter(Boolean).join(" · ");
}
