// Pictures as queries: chosen, dropped anywhere on the page, or pasted.

import { ask } from "../parts/api.js";
import { h, icon, iconButton } from "../parts/dom.js";
import { tell } from "../parts/messages.js";

const isPicture = (file) => file.type.startsWith("image/");

export class PictureInput {
  constructor(onPicture) {
    this.onPicture = onPicture;
    this.field = h("input", { type: "file", accept: "image/*", hidden: true, "aria-label": "Picture to search with", onchange: () => this.take(this.field.files) });
    this.button = iconButton("picture", "Search with a picture", { onclick: () => this.field.click() });
    this.veil = h("div", { class: "drop-veil", hidden: true }, h("p", {}, icon("picture"), "Drop a picture to search with it"));
    this.listeners = new AbortController();
    this.listen();
  }

  close() {
    this.listeners.abort();
    this.veil.remove();
  }

  listen() {
    const options = { signal: this.listeners.signal };
    const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
    document.body.append(this.veil);
    document.addEventListener("dragover", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      this.veil.hidden = false;
    }, options);
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) this.veil.hidden = true;
    }, options);
    document.addEventListener("drop", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      this.veil.hidden = true;
      this.take(event.dataTransfer.files);
    }, options);
    document.addEventListener("paste", (event) => {
      if (![...(event.clipboardData?.files ?? [])].some(isPicture)) return;
      event.preventDefault();
      this.take(event.clipboardData.files);
    }, options);
  }

  async take(files) {
    const file = [...files].find(isPicture);
    this.field.value = "";
    if (!file) return files.length ? tell("That is no picture; drop a JPEG, PNG or WebP file.", "error") : undefined;
    this.button.setAttribute("aria-busy", "true");
    const form = new FormData();
    form.append("picture", file, file.name || "pasted");
    try {
      const { id } = await ask("/v1/uploads", { method: "POST", form });
      this.onPicture({ kind: "upload", id, weight: 1 });
    } catch (error) {
      tell(error.message, "error");
    } finally {
      this.button.removeAttribute("aria-busy");
    }
  }
}
