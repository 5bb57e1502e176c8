// For learners: a tour of any run, whose stops are found by what happens there, and a mode in which
// one predicts what a request will touch.
"use strict";

// "1 lane updates", "2 lanes update".
const lanesDo = (count, verb) => `${plural(count, "lane")} ${verb}${count === 1 ? "s" : ""}`;

// The stops {title, text, kernel, event}. What a text says is counted in the run.
function tourOf(runs) {
  return runs.flatMap(run => {
    const stops = [], {kinds, moments} = run;
    const add = (m, title, say) => {
      if (m === undefined || m < 0) return;
      const {counts, array, event} = moments[m], text = say(counts, array?.name);
      const whole = runs.length > 1 ? `${run.name}: ${title}` : title;
      stops.push({title: whole, text, kernel: run.name, event, m});
    };
    const best = worth => {  // the first moment of the greatest worth above 0
      let found = -1, most = 0;
      moments.forEach((moment, m) => {
        const value = worth(moment);
        if (value > most) [most, found] = [value, m];
      });
      return found;
    };

    const first = best(moment => ACCESSES.has(moment.kind)), [worst] = kinds.worst;
    if (first < 0) return [];
    add(first, "The first request",
        ({lanes, sectors}, name) => `A warp asks for ${name}: ${plural(lanes, "lane")}, ${
                                        plural(sectors, "sector")} of 32 bytes. ` +
            "Colours are lanes; what is hatched is moved and not used.");
    if (worst !== first)
      add(worst, "The request that wastes most",
          ({used, ideal, sectors}, name) =>
              `Its lanes use ${plural(used, "byte")} of ${name}, which ${
                  plural(ideal, "sector")} could hold. ` +
              `They are so far apart that the request touches ${sectors}.`);
    const x = best(
        moment => moment.kind === "load" && moment.array?.name === "x" ? moment.counts.sectors : 0);
    if (x !== worst)
      add(x, "x, where the columns say",
          ({sectors, lanes}) =>
              `The columns of the matrix decide which elements of x the lanes want: here ${
                  plural(sectors, "sector")} for ${plural(lanes, "lane")}.`);
    const idle = best(
        moment => moment.counts && moment.live !== moment.mask ? LANES - moment.counts.lanes : 0);
    add(idle, moments[idle]?.counts.lanes === 1 ? "One lane works" : "Most lanes wait",
        ({lanes}) => `${plural(lanes, "lane")} of 32 make${lanes === 1 ? "s" : ""} this request. ` +
            "The others have nothing to do here, and the warp takes as long all the same.");
    add(kinds.operation[0], "Values without memory",
        () => "Lanes read each other's registers, or vote. Nothing is asked of memory.");
    const conflict = best(({counts}) => counts ? counts.passes - counts.idealPasses : 0);
    add(conflict, "A bank conflict",
        ({passes, idealPasses}) =>
            "Lanes want different words of one bank of shared memory, which are served one after the " +
            `other: ${passes} passes instead of ${idealPasses}.`);
    add(kinds.barrier[0], "A barrier",
        () => "No warp of the block goes on before all have come here.");
    const same = moment => moment.counts.lanes - new Set(run.request(moment).addresses).size;
    add(best(moment => moment.kind === "atomic" ? 1 + same(moment) : 0), "An atomic",
        ({lanes}, name) =>
            `${lanesDo(lanes, "update")} ${name}; those that want the same element take turns.`);
    add(kinds.giver[0], "From another warp",
        () => "What this request reads, another warp has left there before.");
    add(kinds.wrong[0], "Here it goes wrong",
        () => run.trace.failure ? "The kernel was stopped here." :
                                  "The last to write an element of y leaves a wrong value.");
    const result =
        moments.findLastIndex(moment => moment.kind !== "load" && moment.array?.name === "y");
    const totals = run.totals(run.count - 1);
    add(result, "The last result",
        () => `In all the warps asked for ${
            totals["moved / needed"]} times the bytes that the product needs; ${
            totals.lanes} of 32 lanes were active in a request.`);
    return stops.sort((a, b) => a.m - b.m);
  });
}

// Hides what a request touches until it has been guessed. A moment is asked once.
const quiz = {
  on: false,
  answers: new Map(),
  right: 0,

  asks(moment) { return this.on && ACCESSES.has(moment.kind) && !this.answers.has(moment); },
  shared(moment) { return moment.counts.sectors === 0; },
  result(moment) { return this.shared(moment) ? moment.counts.passes : moment.counts.sectors; },
  // Four numbers, the right one among them.
  choices(moment) {
    const {counts, instruction} = moment;
    const some = [
      this.result(moment), this.shared(moment) ? counts.idealPasses : counts.ideal, counts.lanes,
      Math.ceil(counts.lanes * instruction.size / SECTOR), 1, 2, 4, 8, 16, 32
    ];
    return [...new Set(some)].slice(0, 4).sort((a, b) => a - b);
  },
  question(pane) {
    const {moment, run} = pane, {instruction, counts, kind} = moment;
    const verb = {load: "load", store: "store", atomic: "update"}[kind],
          what = `${lanesDo(counts.lanes, verb)} ${moment.array.name}`;
    const buttons =
        this.choices(moment).map(number => button(number, () => this.answer(pane, number)));
    const answers = make("span", {className: "answers"}, ...buttons);
    return [
      `Line ${run.source(moment.place).line}: `, make("b", {textContent: what}),
      `, ${instruction.size} bytes each. ` +
          (this.shared(moment) ? "How many passes over the banks does it take?" :
                                 "How many sectors of 32 bytes will the request touch?"),
      answers
    ];
  },
  answer(pane, number) {
    this.answers.set(pane.moment, number);
    this.right += number === this.result(pane.moment);
    this.show();
    pane.show(pane.m);
  },
  // What to say of a moment that was asked.
  verdict(moment) {
    if (!this.on || !this.answers.has(moment)) return [];
    const said = this.answers.get(moment), result = this.result(moment);
    return [make("b", {
      className: said === result ? "right" : "wrong",
      textContent: said === result ? `${result} is right. ` : `Not ${said}: ${result}. `
    })];
  },
  toggle() {
    this.on = !this.on;
    if (this.on) {
      [this.answers, this.right] = [new Map(), 0];
      closeTour();
    }
    $("grain").value = this.on ? "news" : "request";
    this.show();
    redraw();
  },
  show() {
    $("quiz").setAttribute("aria-pressed", this.on);
    $("quiz").textContent =
        this.on ? `predict: ${this.right} of ${this.answers.size} right` : "predict";
  },
  // 1 to 4 answer what is asked. Whether the key was one.
  key(key) {
    const pane = panes.find(one => one.asked);
    const button = pane && [...pane.sentence.querySelectorAll("button")][key - 1];
    if (button) button.click();
    return Boolean(button);
  },
};
