// Starts the page: who is here, which collection, which view.

import { ItemDialog } from "./detail/item-dialog.js";
import { ask, readSession, session, signOut } from "./parts/api.js";
import { h, iconButton } from "./parts/dom.js";
import { listenToKeys, showKeys } from "./parts/keys.js";
import { failure, notice } from "./parts/messages.js";
import { addressOf, go, pathOf, readPlace } from "./parts/place.js";
import { signInDialog, signInForm, useKey } from "./parts/sign-in.js";
import { themeButton } from "./parts/theme.js";
import * as search from "./views/search.js";

const LOADERS = {
  search: async () => search,
  compare: () => import("./views/compare.js"),
  map: () => import("./views/map.js"),
  log: () => import("./views/log.js"),
  jobs: () => import("./views/jobs.js"),
};
const TITLES = { search: "Search", compare: "Compare", map: "Map", log: "Query log", jobs: "Jobs" };

const main = document.getElementById("main");
// What views share: the collections, the one at hand, and the list of answers an item was opened from.
const app = { collections: [], collection: null, list: null, refresh };
const detail = new ItemDialog(app);
let current = null;
let rendering = 0;

async function refresh() {
  app.collections = (await ask("/v1/collections")).collections;
  const wanted = readPlace().params.get("c");
  app.collection = app.collections.find(({ name }) => name === wanted) ?? app.collections[0] ?? null;
  return app.collection;
}

function closeView() {
  current?.view.close?.();
  current = null;
  app.list = null;
  main.replaceChildren();
}

async function render() {
  const turn = ++rendering;
  const place = readPlace();
  const wanted = place.params.get("c");
  if (wanted && wanted !== app.collection?.name) app.collection = app.collections.find(({ name }) => name === wanted) ?? null;
  else if (!wanted) app.collection = app.collections[0] ?? null;
  showTop(place);
  if (!app.collection) return showNoCollection(wanted);
  if (current?.name !== place.view || current.collection !== app.collection.name) {
    const module = await LOADERS[place.view]();
    if (turn !== rendering) return;
    closeView();
    main.className = `view-${place.view}`;
    current = { name: place.view, collection: app.collection.name, view: module.open(main, app) };
  }
  document.title = `${TITLES[place.view]} · ${app.collection.name} · Diptych`;
  current.view.update(place);
  detail.update(place);
}

function showNoCollection(wanted) {
  closeView();
  const text = wanted
    ? `The service has no collection called ${wanted}.`
    : "Make one with “diptych index FOLDER”, then start “diptych serve FOLDER”.";
  main.append(notice("No such collection", text, app.collections[0] && h("a", { class: "button", href: "/" }, `Open ${app.collections[0].name}`)));
}

function showTop(place) {
  const kept = new URLSearchParams(app.collections.length > 1 && app.collection ? { c: app.collection.name } : {});
  for (const link of document.querySelectorAll("#views a")) {
    link.href = addressOf(pathOf(link.dataset.view), kept);
    if (link.dataset.view === place.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.querySelector(".brand").href = addressOf("/", kept);
  const chooser = document.getElementById("collection-chooser");
  if (chooser && app.collection) chooser.value = app.collection.name;
}

function collectionChooser() {
  if (app.collections.length < 2) return null;
  const choose = (event) => go(pathOf(readPlace().view), new URLSearchParams({ c: event.target.value }));
  return h("select", { id: "collection-chooser", "aria-label": "Collection", onchange: choose },
    app.collections.map(({ name }) => h("option", { value: name }, name)));
}

async function start() {
  main.setAttribute("aria-busy", "true");
  try {
    await readSession();
    await useKey();
    document.getElementById("visitor").hidden = !session.visitor || session.needs_token;
    if (session.needs_token && !session.signed_in) return showSignIn();
    await refresh();
    document.getElementById("top-end").replaceChildren(
      ...[collectionChooser(), iconButton("keys", "Keyboard shortcuts", { onclick: showKeys, class: "wide-only" }), accountButton(), themeButton()].filter(Boolean));
    await render();
  } catch (error) {
    closeView();
    main.append(failure(error, start));
  } finally {
    main.removeAttribute("aria-busy");
  }
}

// What a view offers depends on who is here, so it is opened anew.
function startAnew() {
  closeView();
  return start();
}

function accountButton() {
  const [word, onclick] = session.csrf
    ? ["Sign out", () => signOut().then(startAnew, (error) => main.prepend(failure(error)))]
    : ["Sign in", () => signInDialog(startAnew)];
  return h("button", { type: "button", class: "quiet", onclick }, word);
}

function askToSignIn() {
  if (document.querySelector(".sign-in")) return;
  if (session.needs_token) showSignIn();
  else signInDialog(startAnew);
}

function showSignIn() {
  closeView();
  document.title = "Sign in · Diptych";
  document.getElementById("top-end").replaceChildren(themeButton());
  main.replaceChildren(signInForm(start));
  main.querySelector("input").focus();
}

function followLink(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const url = new URL(link.href);
  const outside = url.origin !== location.origin || /^\/(v1|static)\//.test(url.pathname) || link.target || url.hash;
  if (outside) return;
  event.preventDefault();
  go(url.pathname, url.searchParams);
  window.scrollTo(0, 0);
}

document.addEventListener("click", followLink);
window.addEventListener("popstate", render);
window.addEventListener("diptych:place", render);
window.addEventListener("diptych:sign-in", askToSignIn);
// The address of a sign-in, opened in a window that shows the page already.
window.addEventListener("hashchange", () => location.hash.startsWith("#key=") && startAnew());
listenToKeys();
start();
