// Two search models that answer the same searches: whose answers people click.

import { address, ask, isAbort, session } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { count, date, pValue, time } from "../parts/format.js";
import { failure, tell } from "../parts/messages.js";
import { term } from "../parts/words.js";

export class InterleavingCard {
  constructor(app, signal) {
    this.collection = app.collection.name;
    this.signal = signal;
    this.body = h("div", { class: "interleaving" });
    this.element = h("section", { class: "card", "aria-labelledby": "interleaving-title" }, h("h2", { id: "interleaving-title" }, "Two search models on live searches"),
      h("p", { class: "faint" }, "Both pick the answers of each search for pictures in turn, a coin says who begins, and nobody sees who picked what. The one whose answers are clicked more often is better; the coin makes up for places that are clicked more."),
      this.body);
    this.load();
  }

  async load() {
    try {
      const [{ interleavings }, { retrievers }] = await Promise.all(["interleaving", "retrievers"].map((part) => ask(address(this.collection, part), { signal: this.signal })));
      this.draw(interleavings, retrievers);
    } catch (error) {
      if (!isAbort(error)) this.body.replaceChildren(failure(error, () => this.load()));
    }
  }

  draw(interleavings, retrievers) {
    const running = interleavings.find(({ stopped }) => stopped === null);
    const past = interleavings.filter((one) => one !== running);
    const ready = retrievers.filter((one) => one.ready);
    const control = session.read_only ? null : running ? this.stopButton() : ready.length > 1 ? this.form(ready) : null;
    const alone = !running && ready.length < 2 && h("p", { class: "faint" }, "This needs a second search model: learn one from clicks, train one on the captions, or add one in the compare view.");
    this.body.replaceChildren(...[running && this.report(running), alone, control, past.length > 0 && h("h3", {}, "Earlier comparisons"), ...past.map((one) => this.report(one))].filter(Boolean));
  }

  report(one) {
    const { a, b, wins_a: left, wins_b: right, ties, searches, clicks_a: clicksLeft, clicks_b: clicksRight, p_value: p } = one;
    const all = Math.max(1, left + right);
    const ahead = left > right ? a : b;
    // Looking again and again until a difference shows finds one where there is none.
    const verdict = p >= 0.05 ? "no clear difference yet" : one.stopped ? `${ahead} is better` : `${ahead} is ahead so far`;
    const when = one.stopped ? `${date(one.started)} to ${date(one.stopped)}` : `since ${time(one.started)}`;
    return h("div", { class: "interleaved" },
      h("p", {}, h("strong", {}, a), ` ${left} : ${right} `, h("strong", {}, b), h("span", { class: "faint" }, " searches won")),
      h("span", { class: "tally-bar", "aria-hidden": "true" }, h("span", { class: "tally-left", style: { width: `${(100 * left) / all}%` } }), h("span", { class: "tally-right", style: { width: `${(100 * right) / all}%` } })),
      h("p", { class: "faint" }, `${verdict} (${pValue(p)}, `, term("sign test"), `); ${count(searches, "search", "searches")} ${when}, answers clicked ${clicksLeft} : ${clicksRight}, ${count(ties, "tie")}`),
      one.state === "waiting" && h("p", { class: "field-error" }, "One of the two is no longer there as it was; the search model in use answers alone."));
  }

  stopButton() {
    return h("div", { class: "actions" }, h("button", { type: "button", onclick: (event) => this.change(event.target, { method: "DELETE" }, "Stopped; the search model in use answers alone.") }, "Stop"));
  }

  form(ready) {
    const picker = (side, chosen) => h("select", { id: `interleave-${side}`, "aria-label": `Search model ${side}` }, ready.map(({ name, active }) => h("option", { value: name, selected: name === chosen }, `${name}${active ? " (in use)" : ""}`)));
    const pickers = [picker("one", ready[0].name), picker("two", ready.at(-1).name)];
    const start = (event) => {
      event.preventDefault();
      const [a, b] = pickers.map(({ value }) => value);
      if (a === b) return tell("Choose two different search models.", "error");
      return this.change(event.submitter, { method: "POST", json: { a, b } }, "Both answer from now on.");
    };
    return h("form", { class: "interleave-form", onsubmit: start }, pickers[0], h("span", { class: "faint" }, "against"), pickers[1], h("button", {}, "Start"));
  }

  async change(button, request, told) {
    button.disabled = true;
    try {
      await ask(address(this.collection, "interleaving"), request);
      tell(told);
    } catch (error) {
      tell(error.message, "error");
    }
    await this.load();
  }
}
