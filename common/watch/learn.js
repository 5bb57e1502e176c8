// A tour of any run, whose stops are found by what happens there.
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
        () => "No warp of the block goes on before all have come here. In the picture of all " +
            "warps, see who waits for whom.");
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
