// The menu beside the results: a link to the search, saving it, and taking its pictures along.

import { address, isReadOnly, query } from "../parts/api.js";
import { h, icon } from "../parts/dom.js";
import { tell } from "../parts/messages.js";
import { joinFilters } from "../parts/search-state.js";
import { chooseAlbums, saveSearch } from "./keep.js";

const MOST = 200;

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    tell("Link copied.");
  } catch {
    tell(`Copy it from here: ${location.href}`);
  }
}

export class ShareMenu {
  // "look" returns what is shown: the state, the page of answers, and the answers so far.
  constructor(collection, look) {
    Object.assign(this, { collection, look });
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
      !own && answers.length > 0 && this.download("zip", "Download pictures (zip)", words, filter, state),
      !own && answers.length > 0 && this.download("gallery", "Download as web gallery (zip)", words, filter, state),
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
