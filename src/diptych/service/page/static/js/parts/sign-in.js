// The way in: an address that works once, or the token.

import { session, signIn } from "./api.js";
import { h, iconButton } from "./dom.js";
import { tell } from "./messages.js";

const BEYOND = "This service can be reached from other machines, so it asks for its token. Whoever started it has it.";
const HERE = "To add, edit and see the log, open the address that “diptych serve” prints when it starts, or give the token. Without one of its own, the service keeps it in ~/.local/state/diptych/token.";

export function signInForm(onDone) {
  const field = h("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true, "aria-describedby": "token-error" });
  const error = h("p", { id: "token-error", class: "field-error", role: "alert" });
  async function submit(event) {
    event.preventDefault();
    error.textContent = "";
    try {
      await signIn({ token: field.value });
      onDone();
    } catch (problem) {
      error.textContent = problem.status === 401 || problem.status === 403 ? "That is not the token of this service." : problem.message;
      field.select();
    }
  }
  return h("form", { class: "sign-in notice", onsubmit: submit },
    h("h1", { id: "sign-in-title" }, "Sign in"),
    h("p", {}, session.needs_token ? BEYOND : HERE),
    h("label", { for: "token" }, "Token"), field, error,
    h("button", { class: "primary" }, "Sign in"));
}

export function signInDialog(onDone) {
  const dialog = h("dialog", { class: "signing-in", "aria-labelledby": "sign-in-title", onclose: () => dialog.remove() },
    iconButton("close", "Close", { onclick: () => dialog.close() }),
    signInForm(() => {
      dialog.close();
      onDone();
    }));
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("input").focus();
}

// The key leaves the address before it is used: neither a reload nor the history of the browser shall hold it.
export async function useKey() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  await signIn({ key }).catch((error) => session.csrf || tell(error.message, "error"));
}
