// Pictures as queries: chosen, dropped anywhere on the page, or pasted.

import { ask } from "../parts/api.js";
import { h, icon, iconButton } from "../parts/dom.js";
import { tell } from "../parts/messages.js";

// Browsers have no type for what cameras write; the service says whether it can be read.
export const OTHERS = ".heic,.heif,.dng,.nef,.cr2,.cr3,.arw,.raf,.orf,.rw2,.jp2,.tga,.qoi,.dds,.psd,.pcx,.mkv";

export const isPicture = (file) => /^(image|video)\//.test(file.type) || OTHERS.split(",").some((ending) => file.name.toLowerCase().endsWith(ending));

export const noPicture = (files) => `${files.map(({ name }) => `“${name}”`).join(", ")}: no picture; choose JPEG, PNG or other picture files.`;

export class PictureInput {
  constructor(onPicture) {
    this.onPicture = onPicture;
    this.field = h("input", { type: "file", accept: `image/*,video/*,${OTHERS}`, hidden: true, "aria-label": "Picture to search with", onchange: () => this.take(this.field.files) });
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

  async take(given) {
    // Emptying the field would empty its list of files, too.
    const files = [...given];
    const file = files.find(isPicture);
    this.field.value = "";
    if (!file) return files.length ? tell(noPicture(files), "error") : undefined;
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
