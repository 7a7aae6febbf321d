// One answer, as a picture with its score, or as a text with a small picture.

import { isReadOnly, thumbnailOf } from "../parts/api.js";
import { h, icon, iconButton } from "../parts/dom.js";
import { clock, percent } from "../parts/format.js";
import { addressOf, itemPath, readPlace } from "../parts/place.js";
import { pictureBoxes } from "../parts/picture-boxes.js";
import { scoreBar } from "../parts/score-bar.js";

const AGAIN_AFTER = 800;

export const describe = (answer) => answer.caption ?? answer.captions?.[0] ?? answer.labels?.join(", ") ?? "";

export const titleOf = (answer) => describe(answer) || answer.name || answer.id;

export function thumbnail(collection, answer, properties = {}) {
  if (!answer.picture) return h("span", { class: "no-picture" }, icon("text"));
  const image = h("img", {
    src: thumbnailOf(collection, answer), alt: "", width: answer.width ?? 256, height: answer.height ?? 256, loading: "lazy", decoding: "async", ...properties,
  });
  // A busy service may refuse one of many pictures; it is asked once more before the picture is given up.
  image.addEventListener("error", () => {
    image.addEventListener("error", () => image.replaceWith(h("span", { class: "no-picture" }, icon("picture"), "no picture")), { once: true });
    image.classList.add("waiting");
    image.addEventListener("load", () => image.classList.remove("waiting"), { once: true });
    setTimeout(() => { image.src = image.src; }, AGAIN_AFTER);
  }, { once: true });
  return image;
}

// Asks for the pictures on the first screen, so that they travel while the tiles are still being made.
export async function sendForPictures(collection, answers) {
  for (const answer of answers) if (answer.picture) new Image().src = thumbnailOf(collection, answer);
  // A picture is asked for once the script pauses.
  await null;
}

function actions(answer, onLike, onKeep) {
  if (!onLike) return null;
  return h("div", { class: "tile-actions" },
    onKeep && !isReadOnly() && iconButton("album", "Add to album", { class: "keep", onclick: () => onKeep(answer) }),
    iconButton("plus", "More like this", { class: "like", onclick: () => onLike(answer, 1) }),
    iconButton("minus", "Less like this", { class: "unlike", onclick: () => onLike(answer, -1) }));
}

function spoken(answer) {
  const scored = answer.probability !== undefined;
  const moment = typeof answer.seconds === "number" ? `, video at ${clock(answer.seconds)}` : "";
  const where = answer.region ? `, ${answer.region.place} of the picture` : "";
  return `${titleOf(answer)}${moment}${where}${scored ? `, ${percent(answer.probability)} likely` : ""}`;
}

export function tile(collection, answer, { onOpen, onLike, onKeep, eager = false, marks = [] } = {}) {
  const asText = answer.caption !== null && answer.caption !== undefined;
  const href = addressOf(itemPath(answer.id), readPlace().params);
  const open = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    onOpen(answer);
  };
  const scored = answer.probability !== undefined && answer.probability !== null;
  const classes = ["tile", asText && "tile-text", !answer.picture && !asText && "tile-words", scored && !answer.good && "below"];
  return h("li", {
    class: classes.filter(Boolean).join(" "), "data-id": answer.id, "data-caption": answer.caption_id, "data-shape": answer.width && answer.height ? answer.width / answer.height : null,
  },
    h("a", { class: "tile-link", href, "aria-label": spoken(answer), onclick: open },
      h("span", { class: "tile-picture" }, !answer.picture && !asText ? h("span", { class: "words" }, titleOf(answer)) : thumbnail(collection, answer, eager ? { loading: "eager" } : {}), !asText && pictureBoxes(answer, answer, "slice")),
      h("span", { class: "tile-foot" },
        h("span", { class: "tile-title" }, titleOf(answer)),
        scored && scoreBar(answer.probability),
        marks.map((mark) => h("span", { class: "mark" }, mark)),
        typeof answer.seconds === "number" && h("span", { class: "mark moment" }, `▶ ${clock(answer.seconds)}`),
        answer.matched_by?.includes("words") && h("span", { class: "mark" }, (answer.matched_fields ?? []).join(", ") || "words"))),
    actions(answer, onLike, onKeep));
}
