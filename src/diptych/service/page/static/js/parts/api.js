// The REST API, seen from the page: JSON in, JSON out, problem documents as errors.

export class Problem extends Error {
  constructor(status, kind, detail, retryAfter = null) {
    super(detail);
    Object.assign(this, { status, kind, retryAfter });
  }
}

// Who has not signed in may only read, whatever the service allows others; a visitor could sign in and write.
export const session = { signed_in: false, needs_token: false, csrf: null, read_only: true, visitor: false, version: "" };

const UNREACHABLE = "The service does not answer. Is it still running?";

async function problemOf(response) {
  let document = {};
  try {
    document = await response.json();
  } catch { /* An answer from something between the page and the service; the status has to do. */ }
  const kind = (document.type ?? "").split("/").pop() || "error";
  const detail = document.detail ?? document.title ?? `The service answered with status ${response.status}.`;
  const errors = (document.errors ?? []).map((error) => error.message ?? error.msg ?? error.detail).filter(Boolean);
  return new Problem(response.status, kind, [detail, ...errors].join(" "), Number(response.headers.get("Retry-After")) || null);
}

async function send(path, { method = "GET", json, form, signal, keepalive } = {}) {
  const headers = { Accept: "application/json" };
  if (json !== undefined) headers["Content-Type"] = "application/json";
  if (session.csrf) headers["X-Diptych-CSRF"] = session.csrf;
  const body = json !== undefined ? JSON.stringify(json) : form;
  try {
    return await fetch(path, { method, headers, body, signal, keepalive, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", UNREACHABLE);
  }
}

export const isReadOnly = () => session.read_only;

export async function ask(path, options = {}) {
  let response = await send(path, options);
  const stale = (response.status === 401 || response.status === 403) && options.method && path !== "/v1/session";
  // A session that ran out while the page stood open is renewed once; a true refusal answers the same again.
  if (stale && (await renewSession())) response = await send(path, options);
  if (response.status === 401 && path !== "/v1/session") window.dispatchEvent(new Event("diptych:sign-in"));
  if (!response.ok) throw await problemOf(response);
  return response.status === 204 ? null : response.json();
}

async function renewSession() {
  const before = session.csrf;
  await readSession();
  return Boolean(session.csrf) && session.csrf !== before;
}

export async function readSession() {
  const response = await send("/v1/session");
  if (!response.ok) throw await problemOf(response);
  const document = await response.json();
  const read_only = document.read_only || !document.csrf;
  return Object.assign(session, document, { read_only, visitor: read_only && !document.read_only });
}

// With the token, or with the key of an address that works once.
export async function signIn(secret) {
  await ask("/v1/session", { method: "POST", json: secret });
  return readSession();
}

export async function signOut() {
  await ask("/v1/session", { method: "DELETE" });
  return readSession();
}

export function query(parameters) {
  const kept = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return kept.length ? `?${new URLSearchParams(kept)}` : "";
}

export const address = (collection, ...parts) =>
  ["/v1/collections", collection, ...parts].map((part, place) => (place ? encodeURIComponent(part) : part)).join("/");

export const thumbnailOf = (collection, item) =>
  address(collection, "items", item.id, "thumbnail") + query({ v: item.content_hash });

export const isAbort = (error) => error.name === "AbortError";
