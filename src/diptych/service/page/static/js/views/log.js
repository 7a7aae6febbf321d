// The query log view: how much was asked, what found nothing, where people clicked, and what was learned from it.

import { address, ask, isAbort, query, session } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { count, date, number, percent } from "../parts/format.js";
import { columns } from "../parts/columns.js";
import { InterleavingCard } from "../log/interleaving.js";
import { LearningCard } from "../log/learning.js";
import { confirm, failure, notice, tell } from "../parts/messages.js";
import { addressOf } from "../parts/place.js";
import { term } from "../parts/words.js";

const DAYS = 30;
const MOST_POSITIONS = 20;
const FORMATS = ["csv", "jsonl"];

// The query with what can be seen in pictures marked; places count whole characters, as the service does.
function marked({ query: words, visible }) {
  const characters = Array.from(words);
  const pieces = [];
  let end = 0;
  for (const span of visible) {
    pieces.push(characters.slice(end, span.start).join(""), h("mark", { class: "visible", title: `Can be seen: ${span.concept}` }, characters.slice(span.start, span.end).join("")));
    end = span.end;
  }
  return [...pieces, characters.slice(end).join("")];
}

const visibleShare = ({ visualness }) => (visualness === null ? "–" : percent(visualness));

class LogView {
  constructor(root, app) {
    this.app = app;
    this.collection = app.collection;
    this.stopping = new AbortController();
    this.body = h("div", { class: "page", "aria-busy": String(Boolean(session.csrf)) });
    root.append(this.body);
    if (!session.csrf) return void this.body.append(this.head(), notice("Sign in to see it", "The queries of people are shown on a page that is signed in."));
    const interleaving = this.collection.log_clicks ? new InterleavingCard(app, this.stopping.signal) : null;
    this.interleaving = interleaving?.element ?? null;
    this.learning = new LearningCard(app, this.stopping.signal, () => interleaving?.load()).element;
    this.load();
  }

  update() {}

  close() {
    this.stopping.abort();
  }

  async load() {
    try {
      this.draw(await ask(address(this.collection.name, "query-log") + query({ days: DAYS }), { signal: this.stopping.signal }));
    } catch (error) {
      if (isAbort(error)) return;
      const off = error.kind === "click-log-off" ? { log: false } : null;
      if (off) this.draw(off);
      else this.body.replaceChildren(this.head(), failure(error, () => this.load()));
    }
    this.body.removeAttribute("aria-busy");
  }

  head() {
    const facts = this.collection.log_visitors ? "search model, time and a number that tells visitors apart" : "search model and time";
    return h("div", { class: "page-head" }, h("h1", {}, "Query log"),
      h("p", {}, `Each query, the answers shown and the clicks, with place, ${facts}, so that the search can learn from them. All of it stays on the machine that runs the service.`));
  }

  draw(report) {
    if (!report.log) {
      const text = "This service was started with --no-click-log and remembers nothing. Start it without that flag to keep a log.";
      return this.body.replaceChildren(this.head(), notice("The log is off", text), this.learning);
    }
    if (!report.searches) {
      return this.body.replaceChildren(this.head(), notice("No searches yet", `No query in the last ${DAYS} days.`, h("a", { class: "button primary", href: this.link("") }, "Start searching")), this.learning, this.interleaving);
    }
    this.body.replaceChildren(this.head(), this.volume(report), this.failing(report), this.top(report), this.positions(report), this.learning, this.interleaving, this.keep());
  }

  link(words) {
    const params = new URLSearchParams(this.app.collections.length > 1 ? { c: this.collection.name } : {});
    if (words) params.set("q", words);
    return addressOf("/", params);
  }

  volume({ searches, clicks, visual, per_day: days }) {
    const bars = days.map(({ day, searches: asked, clicks: clicked }) => ({ label: `${date(day)}: ${count(asked, "search", "searches")}, ${count(clicked, "click")}`, value: asked, inner: Math.min(asked, clicked) }));
    return h("section", { class: "card", "aria-labelledby": "volume-title" }, h("h2", { id: "volume-title" }, `Last ${DAYS} days`),
      h("div", { class: "figures" }, this.figure(number(searches), searches === 1 ? "search" : "searches"), this.figure(number(clicks), clicks === 1 ? "click" : "clicks"), this.figure((clicks / searches).toFixed(1), "clicks for each search"), visual && this.figure(percent(visual.searches), "of searches visual"), visual && visual.clicked !== null && this.figure(percent(visual.clicked), "of clicked searches visual")),
      columns(bars, { title: `Searches on each of the last ${DAYS} days`, first: date(days[0]?.day), last: date(days.at(-1)?.day), legend: "light: searches, dark: clicks" }));
  }

  figure(value, name) {
    return h("div", { class: "figure" }, h("strong", {}, value), h("span", { class: "faint" }, name));
  }

  failing({ failing }) {
    return this.table("failing-title", "Failing queries", "No query failed: each had a good match or a click.", failing, ["Query", "Asked", "Why", term("Visual words"), "Last"],
      (row) => [number(row.searches), row.no_good_match ? "no good match" : "never clicked", visibleShare(row), date(row.last)]);
  }

  top({ top }) {
    return this.table("top-title", "Most frequent queries", "", top, ["Query", "Asked", "With a click", term("Visual words"), "Last"],
      (row) => [number(row.searches), percent(row.clicked_share), visibleShare(row), date(row.last)],
      "Marked words name something that can be seen in pictures; a search is visual if more than half of its words are.");
  }

  table(id, title, empty, rows, heads, cells, remark) {
    const body = rows.map((row) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: this.link(row.query) }, marked(row))), cells(row).map((cell) => h("td", {}, cell))));
    return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), remark && h("p", { class: "faint" }, remark), rows.length
      ? h("div", { class: "table-scroll", tabindex: 0, role: "group", "aria-labelledby": id }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, body)))
      : h("p", { class: "faint" }, empty));
  }

  positions({ positions }) {
    const first = positions.slice(0, MOST_POSITIONS);
    const bars = first.map(({ position, shown, clicked }) => ({ label: `Position ${position}: ${clicked} of ${shown} clicked`, value: shown ? clicked / shown : 0 }));
    return h("section", { class: "card", "aria-labelledby": "positions-title" }, h("h2", { id: "positions-title" }, "Clicks by position"),
      h("p", { class: "faint" }, "The share of answers clicked at each position. High positions are clicked more because they are seen first, which exports let you correct for."),
      first.length ? columns(bars, { title: "Share of answers clicked at each position", first: "1", last: String(first.at(-1).position) }) : h("p", { class: "faint" }, "No answer has been shown yet."));
  }

  keep() {
    const download = (format, events) => h("button", { type: "button", onclick: (event) => this.save(event.target, format, events) }, `Export ${events ? "every click" : "clicks"} as ${format.toUpperCase()}`);
    return h("section", { class: "card", "aria-labelledby": "keep-title" }, h("h2", { id: "keep-title" }, "Export or delete"),
      h("p", { class: "faint" }, "Clicks are counted, one row for each query and item; every click comes with its place, search model and time."),
      h("div", { class: "actions" }, FORMATS.map((format) => download(format, false)), download("csv", true)),
      !session.read_only && h("div", { class: "actions forget" }, h("button", { type: "button", class: "danger-word", onclick: () => this.forget() }, "Delete log")));
  }

  async save(button, format, events) {
    button.disabled = true;
    try {
      const path = address(this.collection.name, "clicks") + query({ format, what: events ? "events" : undefined });
      const headers = session.csrf ? { "X-Diptych-CSRF": session.csrf } : {};
      const answer = await fetch(path, { headers });
      if (!answer.ok) throw new Error((await answer.json()).detail);
      const url = URL.createObjectURL(await answer.blob());
      const link = h("a", { href: url, download: `${this.collection.name}-${events ? "events" : "clicks"}.${format}`, target: "_self" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      tell(error.message, "error");
    }
    button.disabled = false;
  }

  async forget() {
    if (!(await confirm("Delete every query and click of this collection? This cannot be undone.", "Delete"))) return;
    try {
      await ask(address(this.collection.name, "clicks"), { method: "DELETE" });
      tell("The log is empty.");
      this.load();
    } catch (error) {
      tell(error.message, "error");
    }
  }
}

export const open = (root, app) => new LogView(root, app);
