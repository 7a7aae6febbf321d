// Captions, labels and metadata of an item, to read and to change.

import { address, ask, isReadOnly } from "../parts/api.js";
import { h, icon, iconButton } from "../parts/dom.js";
import { photoFacts } from "./photo-facts.js";

const written = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

function reading(item, onEdit) {
  const metadata = Object.entries(item.metadata ?? {});
  return h("section", { class: "facts", "aria-label": "About this item" },
    item.captions.length > 0 && h("ul", { class: "captions", "aria-label": "Captions" }, item.captions.map((caption) => h("li", {}, caption))),
    item.labels.length > 0 && h("ul", { class: "labels", "aria-label": "Labels" }, item.labels.map((label) => h("li", {}, label))),
    item.picture_text?.text && h("section", { class: "picture-text", "aria-label": "Text in the picture" }, h("h3", {}, "Text in the picture"), h("p", {}, item.picture_text.text)),
    metadata.length > 0 && h("dl", { class: "metadata" }, metadata.map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, written(value))))),
    photoFacts(item),
    !item.captions.length && !item.labels.length && !metadata.length && h("p", { class: "faint" }, "No captions, labels or metadata yet."),
    !isReadOnly() && h("button", { type: "button", class: "quiet with-word", "data-keep": "edit", onclick: onEdit }, icon("edit"), "Edit"));
}

// A number stays a number, "true" a truth value; everything else is text.
function typed(text) {
  const value = text.trim();
  if (value === "true" || value === "false") return value === "true";
  return value !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
}

const lines = (text, separator) => text.split(separator).map((part) => part.trim()).filter(Boolean);

function metadataRow(key, value) {
  const row = h("div", { class: "metadata-row" },
    h("input", { "aria-label": "Field", name: "key", value: key, placeholder: "field" }),
    h("input", { "aria-label": "Value", name: "value", value: written(value), placeholder: "value" }),
    iconButton("close", "Remove this field", { onclick: () => row.remove() }));
  const [name, field] = row.querySelectorAll("input");
  // What was not touched keeps its kind: a list stays a list, the text "007" a text.
  row.read = () => [name.value.trim(), field.value === written(value) ? value : typed(field.value)];
  return row;
}

// What was not touched is not sent, so that a label with a comma in it survives.
const changed = (parts, text, separator) => (parts.join(separator) === text ? undefined : lines(text, separator.trim() || separator));

function editing(collection, item, { onDone, onCancel }) {
  const captions = h("textarea", { id: "edit-captions", rows: 4, value: item.captions.join("\n") });
  const labels = h("input", { id: "edit-labels", value: item.labels.join(", "), autocomplete: "off" });
  const rows = h("div", { class: "metadata-rows" }, Object.entries(item.metadata ?? {}).map(([key, value]) => metadataRow(key, value)));
  const error = h("p", { class: "field-error", role: "alert" });
  async function save(event) {
    event.preventDefault();
    const change = {
      captions: changed(item.captions, captions.value, "\n"), labels: changed(item.labels, labels.value, ", "),
      metadata: Object.fromEntries([...rows.children].map((row) => row.read()).filter(([key]) => key)),
    };
    error.textContent = "";
    try {
      onDone(await ask(address(collection, "items", item.id), { method: "PATCH", json: change }));
    } catch (problem) {
      error.textContent = problem.message;
    }
  }
  const cancel = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    onCancel();
  };
  return h("form", { class: "facts editing", "aria-label": "Edit this item", onsubmit: save, onkeydown: cancel },
    h("label", { for: "edit-captions" }, "Captions, one on each line"), captions,
    h("label", { for: "edit-labels" }, "Labels, separated by commas"), labels,
    h("p", { class: "label" }, "Metadata"), rows,
    h("button", { type: "button", class: "quiet with-word", onclick: () => rows.append(metadataRow("", "")) }, icon("plus"), "Add a field"),
    error,
    h("div", { class: "actions" }, h("button", { class: "primary" }, "Save"), h("button", { type: "button", onclick: onCancel }, "Cancel")));
}

export function facts(collection, item, onChange) {
  const place = h("div", { class: "facts-place" });
  const read = () => {
    place.replaceChildren(reading(item, edit));
    place.querySelector('[data-keep="edit"]')?.focus();
  };
  const edit = () => {
    place.replaceChildren(editing(collection, item, { onDone: onChange, onCancel: read }));
    place.querySelector("textarea").focus();
  };
  place.append(reading(item, edit));
  return place;
}
