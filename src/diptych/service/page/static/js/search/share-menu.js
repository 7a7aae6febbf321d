// The menu beside the results: a link to the search, saving it, taking its pictures along, and earlier versions.

import { address, ask, isReadOnly, query } from "../parts/api.js";
import { h, icon } from "../parts/dom.js";
import { count, time } from "../parts/format.js";
import { failure, notice, tell } from "../parts/messages.js";
import { joinFilters } from "../parts/search-state.js";
import { chooseAlbums, saveSearch } from "./keep.js";

const MOST = 200;
const MOST_VERSIONS = 100;

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    tell("Link copied.");
  } catch {
    tell(`Copy it from here: ${location.href}`);
  }
}

// What a change did, in words.
function changes({ added, changed, removed }) {
  const parts = [[added, "added"], [changed, "changed"], [removed, "removed"]].filter(([number]) => number);
  return parts.map(([number, word]) => `${number.toLocaleString("en-GB")} ${word}`).join(", ") || "first noted";
}

async function showVersions(collection, onChoose) {
  const body = h("div", {});
  const dialog = h("dialog", { class: "confirm versions", "aria-labelledby": "versions-title" }, h("h2", { id: "versions-title" }, "Earlier versions"), body,
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  try {
    const { versions, kept_days: days } = await ask(address(collection, "history"));
    const choose = (version) => {
      dialog.close();
      onChoose(version);
    };
    const rows = versions.slice(0, MOST_VERSIONS).map((version, place) => h("li", {},
      h("span", {}, h("strong", {}, time(version.time)), h("span", { class: "faint" }, ` ${count(version.items, "item")} · ${changes(version)}`)),
      place ? h("button", { type: "button", "aria-label": `Show version ${version.number}`, onclick: () => choose(version) }, "Show") : h("span", { class: "tag" }, "now")));
    body.replaceChildren(h("p", { class: "faint" }, `The collection can be searched as it was, also with what was removed since. Changes are kept for ${count(days, "day")}.`),
      versions.length ? h("ol", { class: "stored-models", tabindex: 0, "aria-label": "Versions" }, rows) : notice("Nothing yet", "The next change will be noted."));
  } catch (error) {
    body.replaceChildren(failure(error));
  }
}

export class ShareMenu {
  // "look" returns what is shown: the state, the page of answers, and the answers so far.
  constructor(collection, look, onVersion) {
    Object.assign(this, { collection, look, onVersion });
    this.menu = h("div", { id: "share-menu", class: "popover menu", popover: "auto" });
    this.menu.addEventListener("beforetoggle", (event) => event.newState === "open" && this.fill());
    const button = h("button", { type: "button", class: "quiet with-word", popovertarget: "share-menu" }, icon("link"), "Share");
    // Below its button; where anchors are not known it stands in the middle.
    this.element = h("span", { class: "share" }, button, this.menu);
  }

  fill() {
    const { state, page, answers } = this.look();
    const act = (label, onclick) => h("li", {}, h("button", { type: "button", class: "quiet", onclick: () => {
      this.menu.hidePopover();
      onclick();
    } }, label));
    const words = page?.browsing === false ? page.query : "";
    const own = words.includes("upload:");
    const filter = joinFilters(state.filters);
    const entries = [
      act("Copy link to this search", copyLink),
      !isReadOnly() && !own && (words || filter) && act("Save search …", () => saveSearch(this.collection, {
        query: words, filter, target: state.target, mode: state.mode, retriever: state.retriever ?? undefined, min_probability: state.least ?? undefined, sort: state.sort })),
      !isReadOnly() && answers.length > 0 && act("Add results to album …", () => chooseAlbums(this.collection, [...new Set(this.good(answers).map(({ id }) => id))], "these results")),
      !state.at && !own && answers.length > 0 && this.download("zip", "Download pictures (zip)", words, filter, state),
      !state.at && !own && answers.length > 0 && this.download("gallery", "Download as web gallery (zip)", words, filter, state),
      act("Earlier versions …", () => showVersions(this.collection, this.onVersion)),
    ];
    this.menu.replaceChildren(h("ul", {}, entries.filter(Boolean)));
  }

  // Of a search, what is likely; of a list, all that is shown.
  good(answers) {
    const likely = answers.filter(({ good }) => good !== false);
    return likely.length ? likely : answers;
  }

  download(kind, label, words, filter, state) {
    const album = state.album && !words ? state.album : undefined;
    const asked = { kind, q: words || undefined, filter: album ? undefined : filter, album, target: state.target, mode: state.mode, retriever: state.retriever,
      min_probability: words && state.least ? state.least : undefined, limit: MOST };
    return h("li", {}, h("a", { class: "button quiet", href: address(this.collection, "export") + query(asked), download: "", onclick: () => this.menu.hidePopover() }, label));
  }
}
