// What people keep: albums and saved searches, listed beside the results, and the dialogs that change them.

import { address, ask, isAbort, isReadOnly } from "../parts/api.js";
import { h, iconButton } from "../parts/dom.js";
import { number } from "../parts/format.js";
import { confirm, tell } from "../parts/messages.js";
import { addressOf } from "../parts/place.js";
import { albumFilter, readState, writeState } from "../parts/search-state.js";

const LONGEST = 80;
const nameField = (value, properties) => h("input", { type: "text", maxlength: LONGEST, autocomplete: "off", value, ...properties });

// A dialog with some fields; it resolves to whether they are to be used.
function askWith(title, action, ...fields) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "confirm keep-dialog", "aria-labelledby": "keep-title" }, h("form", { method: "dialog" },
      h("h2", { id: "keep-title" }, title), fields,
      h("div", { class: "actions" },
        h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"), h("button", { class: "primary", value: "yes" }, action))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

async function askName(title, action, value = "") {
  const field = nameField(value, { required: true, "aria-label": "Name", autofocus: true });
  return (await askWith(title, action, field)) ? field.value.trim() : "";
}

async function change(path, options, done) {
  try {
    const changed = await ask(path, options);
    tell(done);
    window.dispatchEvent(new Event("diptych:kept"));
    return changed ?? true;
  } catch (error) {
    tell(error.message, "error");
    return null;
  }
}

export async function saveSearch(collection, search) {
  const name = await askName("Save this search", "Save", search.query.slice(0, LONGEST));
  if (name) await change(address(collection, "saved-searches", name), { method: "PUT", json: search }, `Saved as ${name}.`);
}

// One item, or all that are shown: ticked albums have them, and a new one may be made.
export async function chooseAlbums(collection, ids, what) {
  let albums;
  try {
    ({ albums } = await ask(address(collection, "albums")));
  } catch (error) {
    return tell(error.message, "error");
  }
  const boxes = albums.map(({ title, items }) => ({ title, had: ids.every((id) => items.includes(id)), box: h("input", { type: "checkbox" }) }));
  for (const { box, had } of boxes) box.checked = had;
  const fresh = nameField("", { placeholder: "New album", "aria-label": "New album", autofocus: !boxes.length });
  const list = h("ul", { class: "album-boxes" }, boxes.map(({ title, box }) => h("li", {}, h("label", {}, box, h("span", {}, title)))));
  if (!(await askWith(`Albums of ${what}`, "Done", list, fresh))) return;
  for (const { title, had, box } of boxes.filter((one) => one.had !== one.box.checked)) {
    await change(address(collection, "albums", title), { method: "PATCH", json: box.checked ? { add: ids } : { remove: ids } }, had ? `Taken out of ${title}.` : `Added to ${title}.`);
  }
  const title = fresh.value.trim();
  if (!title) return;
  const known = albums.some((album) => album.title.toLowerCase() === title.toLowerCase());
  await change(address(collection, "albums", title), known ? { method: "PATCH", json: { add: ids } } : { method: "PUT", json: { items: ids } }, `Added to ${title}.`);
}

export class Kept {
  constructor(collection) {
    this.collection = collection;
    this.stopping = new AbortController();
    this.element = h("div", { class: "kept" });
    window.addEventListener("diptych:kept", () => this.load(), { signal: this.stopping.signal });
    this.load();
  }

  close() {
    this.stopping.abort();
  }

  async load() {
    const read = (path) => ask(address(this.collection, path), { signal: this.stopping.signal });
    try {
      const [{ albums }, { searches }] = await Promise.all([read("albums"), read("saved-searches")]);
      this.element.replaceChildren(
        ...this.section("Albums", "albums", albums.map(({ title, items }) => ({ name: title, count: items.length, state: { filters: [albumFilter(title)] } }))),
        ...this.section("Saved searches", "saved-searches", searches.map((search) => ({ name: search.name, state: {
          words: search.query, filters: search.filter ? [search.filter] : [], target: search.target, mode: search.mode, retriever: search.retriever,
          least: search.min_probability, sort: search.sort } }))));
    } catch (error) {
      if (!isAbort(error)) this.element.replaceChildren();
    }
  }

  section(title, path, entries) {
    if (!entries.length) return [];
    const params = (state) => writeState({ ...readState(new URLSearchParams()), collection: new URLSearchParams(location.search).get("c"), ...state });
    return [h("section", { "aria-label": title }, h("h3", {}, title), h("ul", {}, entries.map(({ name, count, state }) => h("li", {},
      h("a", { href: addressOf("/", params(state)) }, name), count !== undefined && h("span", { class: "facet-count" }, number(count)),
      !isReadOnly() && h("span", { class: "kept-actions" },
        iconButton("edit", `Rename ${name}`, { onclick: () => this.rename(path, name) }), iconButton("bin", `Delete ${name}`, { onclick: () => this.remove(path, name) }))))))];
  }

  async rename(path, name) {
    const next = await askName(`Rename ${name}`, "Rename", name);
    if (next && next !== name) await change(address(this.collection, path, name), { method: "PATCH", json: path === "albums" ? { title: next } : { name: next } }, `Renamed to ${next}.`);
  }

  async remove(path, name) {
    const fate = path === "albums" ? " Its items stay in the collection." : "";
    if (await confirm(`Delete ${name}?${fate}`, "Delete")) await change(address(this.collection, path, name), { method: "DELETE" }, `${name} is deleted.`);
  }
}
