// Words that a person may not know, each with a sentence that the pointer or the keyboard brings up.

import { h } from "./dom.js";

export const MEANINGS = {
  "search models": "A search model says how similar pictures and texts are; some are quicker, some find more.",
  "likely match": "Of a hundred results at 70%, about seventy show what was asked for. It was measured on photos with captions.",
  "sign test": "How likely so uneven a count would be if both were equally good; below 0.05 it is hardly chance.",
  "95% range": "The true difference lies between these two, 95 times in 100.",
  "By chance": "How likely such a difference would be if both were equally good; below 0.05 it is hardly chance.",
  "Visual words": "The share of words that name something that can be seen in pictures; words such as “of” and “photo” do not count.",
};

export const term = (word) => h("abbr", { class: "term", title: MEANINGS[word], tabindex: 0 }, word);

const MODELS = { default: "default: quick", strong: "strong: finds more, takes longer" };

export const modelName = (name) => MODELS[name] ?? name;
