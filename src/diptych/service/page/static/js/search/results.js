// The list of answers: pages that follow one another, the line below the good ones, and moving by keys.

import { isAbort } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { count, percent } from "../parts/format.js";
import { Masonry } from "../parts/masonry.js";
import { announce, failure } from "../parts/messages.js";
import { tile } from "./tile.js";

const AHEAD = "900px";
const EAGER = 12;

export class Results {
  constructor(collection, { onOpen, onLike, onKeep, onUp }) {
    this.collection = collection;
    this.actions = { onOpen, onLike, onKeep };
    this.onUp = onUp;
    this.list = h("ol", { class: "tiles", "aria-label": "Results", onkeydown: (event) => this.move(event) });
    this.more = h("button", { type: "button", class: "more", onclick: () => this.load(true) }, "Show more");
    this.end = h("p", { class: "end" });
    this.foot = h("div", { class: "results-foot" }, this.more, this.end);
    this.element = h("section", { class: "results", "aria-label": "Results" }, this.list, this.foot);
    this.watcher = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && this.load(), { rootMargin: AHEAD });
    this.answers = [];
  }

  close() {
    this.masonry?.close();
    this.watcher.disconnect();
  }

  fill(page, target, following) {
    const focused = this.links().indexOf(document.activeElement);
    this.answers = [];
    this.cut = false;
    this.following = following;
    this.next = null;
    this.masonry?.close();
    this.list.replaceChildren();
    this.list.removeAttribute("style");
    this.list.classList.toggle("as-texts", target === "texts");
    this.list.classList.toggle("unscored", Boolean(page.browsing || page.draw));
    this.masonry = target === "texts" ? null : new Masonry(this.list);
    this.add(page);
    // Whoever was among the answers before is among these.
    if (focused >= 0 && this.answers.length) this.links()[Math.min(focused, this.answers.length - 1)].focus({ preventScroll: true });
    else if (focused >= 0) this.onUp();
  }

  clear() {
    this.fill({ answers: [], next: null }, "images", null);
    this.end.textContent = "";
  }

  add(page) {
    // Two search models do not mean the same by their numbers; shown, they would say whose answer it is.
    const unscored = page.draw ? { probability: undefined } : {};
    const fresh = page.answers.map((answer, place) => ({ ...answer, ...unscored, position: answer.rank ?? this.answers.length + place + 1 }));
    for (const answer of fresh) {
      if (answer.probability !== undefined && !answer.good && !this.cut) this.addLine(page);
      this.list.append(tile(this.collection, answer, { ...this.actions, eager: answer.position <= EAGER }));
    }
    this.answers.push(...fresh);
    this.masonry?.extend();
    this.next = page.next;
    this.more.hidden = this.next === null;
    this.end.textContent = this.next === null && this.answers.length ? `That is all: ${count(this.answers.length, "result")}.` : "";
    this.watch();
  }

  addLine(page) {
    this.cut = true;
    if (!this.answers.length && page.answers[0] && !page.answers[0].good) return;
    this.list.append(h("li", { class: "line" }, h("span", {}, "Below this line results are much less likely than the first"),
      h("small", {}, `less than ${percent(page.cutoff)}`)));
  }

  // Observing anew fires at once when the end is still in sight, as on tall screens.
  watch() {
    this.watcher.disconnect();
    if (this.next !== null) this.watcher.observe(this.foot);
  }

  async load(byHand = false) {
    this.byHand ||= byHand;
    if (this.loading || this.next === null || !this.following) return;
    const following = this.following;
    this.loading = true;
    this.watcher.disconnect();
    this.foot.querySelector(".notice")?.remove();
    const before = this.answers.length;
    try {
      const page = await following(this.next);
      if (following !== this.following) return;
      const leaving = page.next === null && document.activeElement === this.more;
      this.add(page);
      announce(`${count(this.answers.length, "result")} shown`);
      // The button goes with the last page; whoever was on it is taken to what it brought.
      if (this.byHand || leaving) this.links()[before]?.focus();
      this.byHand = false;
    } catch (error) {
      if (!isAbort(error) && following === this.following) this.foot.append(failure(error, () => this.load(true)));
    } finally {
      this.loading = false;
    }
  }

  links() {
    return [...this.list.querySelectorAll(".tile-link")];
  }

  tileOf(answer) {
    return [...this.list.children].find((element) =>
      element.dataset.id === answer.id && (answer.caption_id ?? undefined) === element.dataset.caption);
  }

  focus(answer) {
    this.tileOf(answer)?.querySelector(".tile-link").focus();
  }

  move(event) {
    const tileNow = event.target.closest?.(".tile");
    if (!tileNow || event.ctrlKey || event.metaKey || event.altKey) return;
    const answer = this.answers[this.links().indexOf(tileNow.querySelector(".tile-link"))];
    if (event.key === "m" || event.key === "l") return this.actions.onLike?.(answer, event.key === "m" ? 1 : -1);
    const goal = this.neighbour(tileNow, event.key);
    if (goal === undefined) return;
    event.preventDefault();
    if (!goal && event.key === "ArrowUp") this.onUp();
    goal?.querySelector(".tile-link").focus();
  }

  // Left and right follow the ranking; up and down go to what lies there on the screen.
  neighbour(from, key) {
    const tiles = [...this.list.querySelectorAll(".tile")];
    const place = tiles.indexOf(from);
    if (key === "ArrowRight") return tiles[place + 1] ?? null;
    if (key === "ArrowLeft") return tiles[place - 1] ?? null;
    if (key === "Home") return tiles[0];
    if (key === "End") return tiles.at(-1);
    if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
    const here = from.getBoundingClientRect();
    const down = key === "ArrowDown";
    const column = tiles.filter((other) => Math.abs(other.getBoundingClientRect().left - here.left) < 2);
    return column[column.indexOf(from) + (down ? 1 : -1)] ?? null;
  }
}
