// Where the person is: a view, its parameters, and perhaps an item above it. The address is the only memory.

const VIEWS = { "/": "search", "/compare": "compare", "/map": "map", "/log": "log", "/jobs": "jobs" };
const PATHS = Object.fromEntries(Object.entries(VIEWS).map(([path, view]) => [view, path]));

export function readPlace() {
  const item = location.pathname.match(/^\/item\/(.+)$/);
  const under = history.state?.under ?? "search";
  return {
    view: item ? under : VIEWS[location.pathname] ?? "search",
    item: item ? decodeURIComponent(item[1]) : null,
    params: new URLSearchParams(location.search),
  };
}

export const pathOf = (view) => PATHS[view] ?? "/";

export function addressOf(path, params) {
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

export function go(path, params = new URLSearchParams(), { replace = false, state = {} } = {}) {
  history[replace ? "replaceState" : "pushState"](state, "", addressOf(path, params));
  window.dispatchEvent(new Event("diptych:place"));
}

export const itemPath = (id) => `/item/${encodeURIComponent(id)}`;

export function openItem(id, { replace = false, why = null } = {}) {
  const place = readPlace();
  const inside = replace ? history.state?.inside : true;
  go(itemPath(id), place.params, { replace, state: { under: place.view, inside, why } });
}

export function closeItem() {
  const place = readPlace();
  // Going back keeps the history short; a shared link has nothing to go back to.
  if (history.state?.inside) history.back();
  else go(pathOf(place.view), place.params, { replace: true });
}
