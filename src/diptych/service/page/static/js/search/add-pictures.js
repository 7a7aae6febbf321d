// Adding pictures: chosen, or dropped on a marked area, with captions for each and labels for all.

import { address, ask } from "../parts/api.js";
import { h, icon, iconButton } from "../parts/dom.js";
import { count } from "../parts/format.js";
import { announce, tell } from "../parts/messages.js";
import { isPicture, noPicture, OTHERS } from "./picture-input.js";

const WAIT = 2;

const parts = (text, separator) => text.split(separator).map((part) => part.trim()).filter(Boolean);

class AddPictures {
  constructor(collection, onAdded) {
    Object.assign(this, { collection, onAdded, added: 0 });
    this.field = h("input", { type: "file", id: "add-files", accept: `image/*,video/*,${OTHERS}`, multiple: true, class: "hidden", onchange: () => this.take(this.field.files) });
    this.area = h("label", { class: "drop-area", for: "add-files" }, icon("picture"), h("span", {}, "Drop pictures here, or ", h("u", {}, "choose files")));
    this.list = h("ul", { class: "adding" });
    this.labels = h("input", { id: "add-labels", autocomplete: "off", placeholder: "holiday, beach" });
    this.error = h("p", { class: "field-error", role: "alert" });
    this.button = h("button", { class: "primary", disabled: true });
    this.element = h("dialog", { class: "add-pictures", "aria-labelledby": "add-title" },
      h("div", { class: "dialog-head" }, h("h2", { id: "add-title" }, "Add pictures"), iconButton("close", "Close", { onclick: () => this.element.close() })),
      h("form", { onsubmit: (event) => this.send(event) },
        this.field, this.area, this.error, this.list,
        h("label", { for: "add-labels" }, "Labels for all of them, separated by commas"), this.labels,
        h("div", { class: "actions" }, this.button)));
    this.listen();
    this.count();
    document.body.append(this.element);
    this.element.showModal();
  }

  listen() {
    const marked = (on) => (event) => {
      // The view below would search with what is dropped.
      event.preventDefault();
      event.stopPropagation();
      this.area.classList.toggle("marked", on);
    };
    this.element.addEventListener("dragover", marked(true));
    this.element.addEventListener("dragleave", marked(false));
    this.element.addEventListener("drop", (event) => {
      marked(false)(event);
      this.take(event.dataTransfer.files);
    });
    this.element.addEventListener("close", () => {
      this.element.remove();
      for (const row of this.list.children) URL.revokeObjectURL(row.preview);
      if (this.added) this.onAdded();
    });
  }

  take(files) {
    const others = [...files].filter((file) => !isPicture(file));
    this.error.textContent = others.length ? noPicture(others) : "";
    this.list.append(...[...files].filter(isPicture).map((file) => this.row(file)));
    this.field.value = "";
    this.count();
  }

  row(file) {
    const captions = h("textarea", { rows: 2, "aria-label": `Captions of ${file.name}, one on each line`, placeholder: "Captions, one on each line" });
    const preview = URL.createObjectURL(file);
    // The service reads more kinds of files than a browser shows.
    const image = h("img", { src: preview, alt: "", width: 72, height: 72, onerror: () => image.replaceWith(icon("picture")) });
    const row = h("li", {}, image,
      h("div", {}, h("p", {}, file.name), captions, h("p", { class: "field-error", role: "alert" })),
      iconButton("close", `Leave out ${file.name}`, { onclick: () => this.drop(row) }));
    return Object.assign(row, { file, captions, preview });
  }

  drop(row) {
    URL.revokeObjectURL(row.preview);
    // Whoever leaves one out by keyboard goes on with the next.
    const next = row.nextElementSibling ?? row.previousElementSibling;
    const held = row.contains(document.activeElement);
    row.remove();
    if (held) (next?.querySelector("button") ?? this.field).focus();
    this.count();
  }

  count() {
    const many = this.list.children.length;
    this.button.textContent = many ? `Add ${count(many, "picture")}` : "Add";
    this.button.disabled = !many;
  }

  async send(event) {
    event.preventDefault();
    this.button.disabled = true;
    const labels = parts(this.labels.value, ",");
    for (const row of [...this.list.children]) {
      const error = row.querySelector(".field-error");
      error.textContent = "";
      if (!this.element.open) break;
      try {
        await this.add(row, labels);
        this.added += 1;
        this.drop(row);
        announce(`${count(this.added, "picture")} added`);
      } catch (problem) {
        error.textContent = problem.message;
      }
    }
    this.count();
    if (this.list.children.length) return;
    this.element.close();
    tell(`${count(this.added, "picture")} added.`);
  }

  async add(row, labels) {
    const form = new FormData();
    form.append("picture", row.file, row.file.name);
    form.append("item", JSON.stringify({ captions: parts(row.captions.value, "\n"), labels }));
    for (;;) {
      try {
        return await ask(address(this.collection, "items", "picture"), { method: "POST", form });
      } catch (problem) {
        // Many pictures at once are more than the service takes in a second; it says when to go on.
        if (problem.status !== 429 || !this.element.open) throw problem;
        await new Promise((resolve) => setTimeout(resolve, 1000 * (problem.retryAfter ?? WAIT)));
      }
    }
  }
}

export const addPictures = (collection, onAdded) => new AddPictures(collection, onAdded);
