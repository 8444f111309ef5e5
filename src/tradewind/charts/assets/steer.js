// What steers a study: pause and resume, stop a trial, queue a configuration, make the reader's
// choice the goal of the study. Each waits for the log, and then says what has happened.
(function (tw) {
  "use strict";

  const { el, put, brief, button, unique, announce } = tw.dom;
  const { clock, spoken, show } = tw.format;

  // The bar below the header: how the connection is, and what can be done.
  class Controls {
    constructor(name, slot, { maySteer, why, several }) {
      this.name = name;
      this.maySteer = maySteer;
      this.dot = el("span", { class: "dot", "aria-hidden": "true" });
      this.word = el("span", { class: "live-word", role: "status" });
      this.where = el("span", { class: "soft where" });
      this.pausing = button("Pause", () => (this.data.study.paused ? this.resume() : this.ask()), { class: "button small" });
      this.queueing = button("Queue a configuration…", () => this.form.open(), { class: "button small" });
      this.queued = el("span", { class: "soft" });
      this.said = el("p", { class: "said", role: "status" });
      this.question = el("form", { class: "question-bar", hidden: true });
      this.form = new tw.Form(() => this.page, async (body) => ((await this.send("enqueue", body)) ? "" : this.said.textContent));
      const back = several ? el("a", { href: "/" }, "All studies") : null;
      const hint = maySteer ? null : el("p", { class: "soft" }, why);
      slot.append(el("div", { class: "live-bar" },
        el("p", { class: "live-state" }, this.dot, this.word), this.where, back,
        el("div", { class: "actions" }, this.queued, this.queueing, this.pausing)), hint || "", this.question, this.said);
      for (const each of [this.pausing, this.queueing]) each.disabled = !maySteer;
      this.connection = { word: "connecting", sentence: "" };
    }

    // The page is there: the choice of the reader can become the goal.
    attach(page) {
      this.page = page;
      this.adopt = button("Make this the study’s goal", () => this.changeGoal(), { class: "button small away" });
      this.adopt.disabled = !this.maySteer;
      page.answer.choice.foot.append(this.adopt);
      this.onChoice = () => this.adopt.classList.toggle("away", page.selected().goal.kind === "own");
      document.addEventListener("tradewind:choice", this.onChoice);
    }

    // ---- showing ----

    update(data) {
      this.data = data;
      const { study, live } = data;
      put(this.where, study.storage ? brief(study.storage, 120) : "");
      put(this.pausing, study.paused ? "Resume" : "Pause…");
      const paused = Boolean(study.paused);
      if (this.claim === this.paused && paused !== this.paused) this.say(""); // it is no longer so
      this.paused = paused;
      this.painting = live && live.painting;
      this.queued.hidden = !study.queued;
      put(this.queued, study.queued ? `${tw.format.plural(study.queued, "configuration")} queued` : "");
      this.away = (live && live.away) || "";
      this.connected();
    }

    state(word, sentence) {
      const back = word === "live" && this.connection.word === "reconnecting";
      if (back && this.said.classList.contains("problem")) this.say(""); // it is over
      this.connection = { word, sentence };
      this.connected();
    }

    connected() {
      const { word, sentence } = this.connection, paused = this.data && this.data.study.paused;
      const [kind, text] =
        word === "connecting" ? ["reconnecting", "connecting"]
        : word === "reconnecting" ? ["reconnecting", sentence ? `reconnecting: ${sentence}` : "reconnecting"]
        : this.away ? ["unread", `cannot be read: ${this.away}`]
        : paused ? ["paused", `paused${paused.at ? ` since ${clock(paused.at)}` : ""}`]
        : ["live", this.painting ? "live, more figures are being computed" : "live"];
      this.dot.className = `dot ${kind}`;
      put(this.word, brief(text, 400));
    }

    // ---- doing ----

    // Send a command and say how it went; true if it was carried out.
    async send(verb, body) {
      this.say("…");
      this.claim = null;
      try {
        this.say(await tw.live.command(this.name, verb, body));
        this.claim = { pause: true, resume: false }[verb]; // what the page says now: paused or not
        return true;
      } catch (error) {
        this.say(error.message, true);
        return false;
      }
    }

    say(sentence, failed = false) {
      this.said.classList.toggle("problem", failed);
      put(this.said, brief(sentence, 700));
    }

    // Why to pause: one more step, which also guards against a slip.
    ask() {
      const reason = el("input", { class: "field", id: unique("reason"), maxlength: 200, placeholder: "for instance: the machine is needed" });
      const label = el("label", { for: reason.id }, "Start nothing more; running trials go on. Why? (optional)");
      const close = () => {
        this.question.hidden = true;
        this.pausing.focus();
      };
      const cancel = button("Cancel", close, { class: "button small" });
      this.question.replaceChildren(label, reason, el("button", { type: "submit", class: "button small strong" }, "Pause the study"), cancel);
      this.question.hidden = false;
      this.question.onsubmit = async (event) => {
        event.preventDefault();
        close();
        await this.send("pause", reason.value.trim() ? { reason: reason.value.trim() } : {});
      };
      this.question.onkeydown = (event) => {
        if (event.key === "Escape") close();
      };
      reason.focus();
    }

    resume() {
      return this.send("resume");
    }

    async changeGoal() {
      const { goal } = this.page.selected(), { choices } = this.data;
      const { by, reference } = choices.tradeoff, { confidence } = choices.limit;
      const more = by ? { by } : {};
      const body = goal.kind === "limit" ? { limit: goal.value, confidence, ...more } : { alpha: goal.value, reference, ...more };
      this.adopt.disabled = true;
      const before = this.data.study.goal;
      const done = await this.send("goal", body);
      this.adopt.disabled = false;
      this.wantsOwn = done ? before : null;
      this.settle(); // the news may have been faster than the answer
    }

    // The study has a new goal: the page shows its choice.
    settle() {
      if (this.wantsOwn === null || this.wantsOwn === undefined || this.data.study.goal === this.wantsOwn) return;
      this.wantsOwn = null;
      this.page.answer.choice.own();
    }

    destroy() {
      document.removeEventListener("tradewind:choice", this.onChoice);
      this.form.node.remove();
    }
  }

  // ---- running trials ----

  // `about 3 min left`, `over its estimate by 20 s`, or why neither is known.
  function rest(trial, now) {
    if (trial.waiting) return "proposed, not started";
    if (trial.lost) return "its driver gives no sign of life";
    if (trial.expected_end === null || trial.expected_end === undefined) return "end unknown";
    const left = trial.expected_end - now;
    return left >= 0 ? `about ${spoken(Math.max(left, 1))} left` : `over its estimate by ${spoken(-left)}`;
  }

  // One card. It stays the same element while the trial runs, so that the focus stays in it.
  class Card {
    constructor(trial, stop) {
      this.trial = trial.trial;
      this.bar = el("progress", { max: 1 });
      this.text = el("p", { class: "soft" });
      this.worker = el("span", { class: "soft" });
      this.actions = el("div", { class: "actions" });
      this.params = el("p", { class: "mono soft" });
      this.node = el("div", { class: "run card", "data-trial": this.trial },
        el("div", { class: "run-head" }, el("strong", {}, `Trial ${this.trial}`), this.worker), this.bar, this.text, this.params, this.actions);
      this.stop = stop;
      if (stop) this.offer();
    }

    offer(focus = false) {
      const first = button("Stop…", () => this.confirm(), { class: "button small", "aria-label": `Stop trial ${this.trial}` });
      this.actions.replaceChildren(first);
      if (focus) first.focus();
    }

    confirm() {
      const yes = button(`Stop trial ${this.trial}`, () => {
        yes.disabled = true;
        this.stop(this.trial).then((done) => done || this.offer());
      }, { class: "button small strong" });
      const no = button("Let it run", () => this.offer(true), { class: "button small" });
      this.actions.replaceChildren(yes, no);
      yes.focus();
      announce(`Stop trial ${this.trial}? What it has done so far is lost.`);
    }

    update(trial, now) {
      const whole = trial.expected_end ? trial.expected_end - trial.started : null;
      const spent = trial.started ? Math.max(0, now - trial.started) : null;
      if (trial !== this.known) {
        this.known = trial;
        put(this.worker, brief(trial.worker || "", 40));
        put(this.params, brief(Object.entries(trial.params).map(([k, v]) => `${k} ${show(v)}`).join(", "), 200));
      }
      put(this.text, `${spent === null ? "" : `${spoken(spent)} so far, `}${rest(trial, now)}`);
      this.bar.hidden = Boolean(trial.waiting);
      if (whole && spent !== null) this.bar.value = Math.min(1, spent / whole);
      else this.bar.removeAttribute("value");
      this.bar.setAttribute("aria-label", `Trial ${this.trial}: ${rest(trial, now)}`);
    }
  }

  // The section of running and waiting trials of a live page.
  function running(store) {
    const cards = new Map(), node = el("div", { class: "running" });
    const update = () => {
      const { running: trials, study } = store.data;
      for (const trial of trials) {
        if (!cards.has(trial.trial)) cards.set(trial.trial, new Card(trial, tw.hooks.stop));
        const card = cards.get(trial.trial);
        card.update(trial.waiting ? { ...trial, params: store.params(trial.trial) } : trial, study.made);
        if (!card.node.isConnected) node.append(card.node);
      }
      const now = new Set(trials.map((trial) => trial.trial));
      for (const [trial, card] of cards) {
        if (now.has(trial)) continue;
        card.node.remove();
        cards.delete(trial);
      }
    };
    update();
    return { node, update };
  }

  tw.Controls = Controls;
  tw.running = { section: running, rest };
})((globalThis.tradewind = globalThis.tradewind || {}));
