// The way in, where the service is reachable from other machines.

import { signIn } from "./api.js";
import { h } from "./dom.js";

export function signInForm(onDone) {
  const field = h("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true, "aria-describedby": "token-error" });
  const error = h("p", { id: "token-error", class: "field-error", role: "alert" });
  async function submit(event) {
    event.preventDefault();
    error.textContent = "";
    try {
      await signIn(field.value);
      onDone();
    } catch (problem) {
      error.textContent = problem.status === 401 || problem.status === 403 ? "That is not the token of this service." : problem.message;
      field.select();
    }
  }
  return h("form", { class: "sign-in notice", onsubmit: submit },
    h("h1", {}, "Sign in"),
    h("p", {}, "This service can be reached from other machines, so it asks for its token. Whoever started it has it."),
    h("label", { for: "token" }, "Token"), field, error,
    h("button", { class: "primary" }, "Sign in"));
}
