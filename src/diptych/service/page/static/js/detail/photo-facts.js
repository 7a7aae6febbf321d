// What a photograph says of itself, as people read it; what somebody gave instead is not said twice.

import { h } from "../parts/dom.js";
import { number } from "../parts/format.js";

const SOURCES = { "file name": "by the name of the file", gps: "by GPS" };
const whole = (text) => text.replace("T", " ").replace(/([+-]\d\d:\d\d)$/, " $1");
const exposure = (seconds) => (seconds < 0.4 ? `1/${Math.round(1 / seconds)} s` : `${number(seconds)} s`);

function rows(facts) {
  const joined = (parts, between = ", ") => parts.filter(Boolean).join(between);
  const { latitude, longitude, altitude } = facts;
  return {
    taken: facts.taken && joined([whole(facts.taken), SOURCES[facts.taken_from]]),
    place: joined([facts.place, facts.region === facts.place ? "" : facts.region, facts.country]),
    coordinates: latitude !== undefined && joined([`${latitude}, ${longitude}`, altitude !== undefined && `${number(altitude)} m`]),
    camera: facts.camera,
    lens: facts.lens,
    exposure: joined([facts.exposure && exposure(facts.exposure), facts.aperture && `f/${number(facts.aperture)}`, facts.iso && `ISO ${facts.iso}`, facts.focal_length && `${number(facts.focal_length)} mm`]),
    rating: facts.rating !== undefined && String(facts.rating),
    keywords: joined(facts.keyword ?? []),
    title: facts.title,
    description: facts.description,
    folder: facts.folder,
  };
}

export function photoFacts({ facts = {}, metadata = {} }) {
  const moved = "latitude" in metadata || "longitude" in metadata ? ["latitude", "longitude", "altitude", "place", "region", "country"] : [];
  const left = Object.fromEntries(Object.entries(facts).filter(([name]) => !(name in metadata) && !moved.includes(name)));
  const shown = Object.entries(rows(left)).filter(([, text]) => text);
  return shown.length > 0 && h("dl", { class: "metadata", "aria-label": "From the file" }, shown.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))));
}
