// One item, above the view it was opened from.

import { address, ask, isReadOnly, thumbnailOf } from "../parts/api.js";
import { h, hidden, icon, iconButton } from "../parts/dom.js";
import { bytes, clock, date, percent } from "../parts/format.js";
import { isTyping } from "../parts/keys.js";
import { announce, confirm, failure, tell } from "../parts/messages.js";
import { closeItem, go, openItem, readPlace } from "../parts/place.js";
import { readState, writeState } from "../parts/search-state.js";
import { scoreBar } from "../parts/score-bar.js";
import { chooseAlbums } from "../search/keep.js";
import { titleOf } from "../search/tile.js";
import { facts } from "./facts.js";
import { neighbours } from "./neighbours.js";
import { VideoStage } from "./video-stage.js";
import { ZoomPicture } from "./zoom-picture.js";
import { whyPanel } from "./why-panel.js";

export class ItemDialog {
  constructor(app) {
    this.app = app;
    this.id = null;
    this.element = h("dialog", { class: "detail", "aria-labelledby": "item-title", onkeydown: (event) => this.key(event) });
    this.element.addEventListener("cancel", (event) => {
      event.preventDefault();
      closeItem();
    });
    this.element.addEventListener("click", (event) => event.target === this.element && closeItem());
    document.body.append(this.element);
  }

  update(place) {
    if (place.item === null) return this.hide();
    this.captionId = history.state?.why ?? null;
    const key = `${place.item}|${this.captionId}`;
    if (this.element.open && key === this.shown) return;
    this.shown = key;
    this.id = place.item;
    if (!this.element.open) this.element.showModal();
    this.load();
  }

  hide() {
    if (!this.element.open) return;
    const answer = this.answer();
    this.element.close();
    this.element.replaceChildren();
    this.shown = null;
    // The focus goes back to the tile of the item that was looked at last, wherever the dialog was opened.
    if (answer) this.app.list.focus(answer);
  }

  answers() {
    return this.app.list?.answers ?? [];
  }

  answer() {
    return this.answers().find((answer) => answer.id === this.id && (answer.caption_id ?? null) === this.captionId)
      ?? this.answers().find((answer) => answer.id === this.id);
  }

  async load() {
    const id = this.id;
    this.asking?.abort();
    this.asking = new AbortController();
    this.element.setAttribute("aria-busy", "true");
    try {
      const item = await ask(address(this.app.collection.name, "items", id), { signal: this.asking.signal });
      if (id === this.id && this.element.open) this.draw(item);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.element.replaceChildren(this.head("Item"), failure(error, error.status === 404 ? null : () => this.load()));
    }
    this.element.removeAttribute("aria-busy");
  }

  draw(item) {
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.keep : null;
    const answer = this.answer();
    const title = titleOf({ ...item, caption: answer?.caption });
    const Stage = item.seconds === null ? ZoomPicture : VideoStage;
    this.picture = item.picture ? new Stage(this.app.collection.name, item, title, answer) : null;
    this.side = h("div", { class: "detail-side" },
      this.head(title, item), this.score(answer), this.buttons(item, answer),
      facts(this.app.collection.name, item, (changed) => this.changed(changed)),
      this.why(item, answer), neighbours(this.app.collection.name, item, (other) => openItem(other.id, { replace: true })));
    this.element.replaceChildren(this.picture?.element ?? h("div", { class: "stage words-stage" }, h("p", {}, title)), this.side);
    this.element.classList.toggle("only-words", !item.picture);
    const start = focused ? this.element.querySelector(`[data-keep="${focused}"]`) : null;
    (start ?? this.element.querySelector('[data-keep="close"]')).focus();
    announce(title);
    this.prefetch();
  }

  head(title, item = null) {
    const place = this.answers().indexOf(this.answer());
    const step = (by, name, label) => iconButton(name, label, { "data-keep": name, disabled: place < 0 || !this.answers()[place + by], onclick: () => this.step(by) });
    return h("div", { class: "detail-head" },
      h("div", { class: "detail-title" },
        h("h2", { id: "item-title" }, title),
        item && h("p", { class: "faint" }, [item.name, item.seconds !== null && `at ${clock(item.seconds)}`, item.width && `${item.width} × ${item.height}`, item.size && bytes(item.size), item.added && `added ${date(item.added)}`].filter(Boolean).join(" · "))),
      h("div", { class: "detail-steps" }, step(-1, "previous", "Previous (←)"), step(1, "next", "Next (→)"), iconButton("close", "Close (Esc)", { "data-keep": "close", onclick: () => closeItem() })));
  }

  score(answer) {
    if (answer?.probability === undefined) return null;
    const where = (answer.matched_fields ?? []).join(", ");
    const text = where && answer.has_words ? `found by its words (${where})` : answer.good ? "a likely match" : "below the line";
    const part = answer.region ? `, ${answer.region.place} of the picture` : "";
    return h("p", { class: "detail-score" }, scoreBar(answer.probability), hidden(percent(answer.probability)), h("span", {}, `Rank ${answer.position}, ${text}${part}`));
  }

  buttons(item, answer) {
    const word = (name, label, onclick, more = {}) => h("button", { type: "button", onclick, "data-keep": label, ...more }, icon(name), label);
    const original = address(this.app.collection.name, "items", item.id, "original");
    return h("div", { class: "actions" },
      word("plus", "More like this", () => this.like(item, answer, 1)),
      word("minus", "Less like this", () => this.like(item, answer, -1)),
      item.picture && h("a", { class: "button", href: original, target: "_blank", rel: "noopener", onclick: () => answer && this.app.list.click?.(answer, "original") }, icon("open"), "Original"),
      word("link", "Copy link", () => this.copy()),
      !isReadOnly() && word("album", "Albums", () => chooseAlbums(this.app.collection.name, [item.id], "this item")),
      !isReadOnly() && word("bin", "Remove", () => this.remove(item), { class: "danger-word" }));
  }

  why(item, answer) {
    const asked = this.app.list?.asked;
    return asked && answer ? whyPanel(this.app.collection.name, { ...asked, retriever: answer.retriever ?? asked.retriever, item: item.id, caption_id: answer.caption_id ?? undefined }) : null;
  }

  // The next picture is ready before it is wanted.
  prefetch() {
    const place = this.answers().indexOf(this.answer());
    const next = place >= 0 ? this.answers()[place + 1] : null;
    if (next?.picture) new Image().src = thumbnailOf(this.app.collection.name, next);
    if (place >= 0 && place >= this.answers().length - 3) this.app.list.more?.();
  }

  step(by) {
    const place = this.answers().indexOf(this.answer());
    const goal = place < 0 ? null : this.answers()[place + by];
    if (!goal) return;
    this.app.list.click?.(goal, "open");
    openItem(goal.id, { replace: true, why: goal.caption_id ?? null });
  }

  like(item, answer, weight) {
    if (answer) this.app.list.click?.(answer, weight > 0 ? "more_like" : "less_like");
    const place = readPlace();
    const state = place.view === "search" ? readState(place.params) : { ...readState(new URLSearchParams()), collection: place.params.get("c") };
    const chips = [...state.chips.filter((chip) => chip.id !== item.id), { kind: "item", id: item.id, weight }];
    this.element.close();
    go("/", writeState({ ...state, chips }));
    window.scrollTo(0, 0);
  }

  async copy() {
    const params = new URLSearchParams(this.app.collections.length > 1 ? { c: this.app.collection.name } : {});
    const link = new URL(`${location.pathname}${params.size ? `?${params}` : ""}`, location.origin);
    try {
      await navigator.clipboard.writeText(link.href);
      tell("Link copied.");
    } catch {
      tell(`Copy it from here: ${link.href}`);
    }
  }

  async remove(item) {
    // What was sent to the service has no other place.
    const wasSent = /^uploads\/[0-9a-f]{32}\./.test(item.path ?? "");
    const fate = wasSent ? "Its file was uploaded and is deleted too." : "Its file stays where it is.";
    if (!(await confirm(`Remove “${titleOf(item)}” from the collection? ${fate}`, "Remove"))) return;
    try {
      await ask(address(this.app.collection.name, "items", item.id), { method: "DELETE" });
      const { changed } = this.app.list ?? {};
      closeItem();
      changed?.();
      tell("Removed from the collection.");
    } catch (error) {
      tell(error.message, "error");
    }
  }

  changed(item) {
    Object.assign(this.answer() ?? {}, { captions: item.captions, labels: item.labels, metadata: item.metadata });
    this.draw(item);
    tell("Saved.");
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "ArrowLeft") this.step(-1);
    else if (event.key === "ArrowRight") this.step(1);
    else if (event.key === "z") this.picture?.toggle();
    else return;
    event.preventDefault();
  }
}
