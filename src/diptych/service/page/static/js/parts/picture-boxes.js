// What a search found in a picture, drawn over it: the boxes of words, and the region that answers best.

import { svg } from "./dom.js";

// "slice" is for a picture that fills its frame and is cut, "meet" for one that is shown whole.
export function pictureBoxes({ picture_words: words = [], region = null }, { width, height }, fit) {
  if (!(words.length || region) || !width || !height) return null;
  const box = (corners, properties = {}) => svg("polygon", { points: corners.map(([x, y]) => `${x * width},${y * height}`).join(" "), ...properties });
  return svg("svg", { class: "picture-boxes", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: `xMidYMid ${fit}`, "aria-hidden": "true" },
    region && box([[region.left, region.top], [region.right, region.top], [region.right, region.bottom], [region.left, region.bottom]], { class: "region" }),
    words.map(({ corners }) => box(corners)));
}
