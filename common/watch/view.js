// The page: one pane per kernel, a bar that moves all of them, a tour. All state is the position.
"use strict";

const $ = id => document.getElementById(id);
const make = (tag, attributes = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), attributes);
  element.append(...children);
  return element;
};
let data, runs, panes;  // what is shown: see load()
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Neighbouring lanes have neighbouring colours: what is coalesced is a smooth run of them.
const RAMP = [[58, 76, 192], [38, 150, 200], [52, 172, 110], [226, 174, 30], [216, 62, 52]];
const laneColour = lane => {
  const at = lane / (LANES - 1) * (RAMP.length - 1), i = Math.min(RAMP.length - 2, Math.floor(at)),
        part = at - i;
  return `rgb(${RAMP[i].map((c, j) => Math.round(c + part * (RAMP[i + 1][j] - c))).join(",")})`;
};
const COLOURS = Array.from({length: LANES}, (_, lane) => laneColour(lane));
const plural = (n, word) => `${n.toLocaleString("en")} ${word}${
    n === 1                ? "" :
        word.endsWith("s") ? "es" :
                             "s"}`;

// A card under a heading, which ends in a text that changes.
function card(heading, ...content) {
  const says = make("span");
  return Object.assign(
      make("div", {className: "card"}, make("h3", {}, heading, says), ...content), {says});
}

// What a colour or pattern means.
const colourKey = (background, text) =>
    make("span", {}, make("i", {style: `background: ${background}`}), text);

// --- The axis
// ---------------------------------------------------------------------------------------

// A tick of the axis is a moment of each run. One run: its moments. Two: in step by instruction, or
// each as far as the other in bytes moved, one moment at a time.
function axisOf(by) {
  if (runs.length === 1) return Array.from({length: runs[0].count}, (_, m) => [m]);
  if (by === "instruction") {
    const count = Math.max(...runs.map(run => run.count));
    return Array.from({length: count}, (_, tick) => runs.map(run => Math.min(tick, run.count - 1)));
  }
  const axis = [runs.map(() => 0)];
  for (;;) {
    const at = axis[axis.length - 1];
    let least = -1;
    runs.forEach((run, r) => {
      if (at[r] + 1 >= run.count) return;
      if (least < 0 || run.sums.sectors[at[r] + 2] < runs[least].sums.sectors[at[least] + 2])
        least = r;
    });
    if (least < 0) return axis;
    axis.push(at.map((m, r) => m + (r === least)));
  }
}

const state = {
  axis: [],
  tick: 0,
  focus: 0,
  playing: 0,
  tour: -1,
  opened: new URLSearchParams(),  // the address as the page was opened
  choices: {}                     // of a live page (live/controls.js)
};
const momentOf = r => state.axis[state.tick][r];

// The first tick at which run r is at moment m.
const tickOf = (r, m) => state.axis.findIndex(moments => moments[r] >= m);

// --- A pane
// -----------------------------------------------------------------------------------------

class Pane {
  constructor(run, number) {
    Object.assign(this, {run, number});
    const {trace} = run;
    this.sentence = make("p", {className: "sentence"});
    this.sentence.setAttribute("aria-live", "polite");
    this.line = make("code", {className: "line"});
    this.totals = make("table", {className: "totals"});
    this.bars = make("div", {className: "bars"});
    const choice = trace.kernel.choice ? `${trace.kernel.choice}; ` : "";
    const failures =
        this.complaints().map(textContent => make("p", {className: "failed", textContent}));
    const top = make(
        "div", {className: "card top"},
        make(
            "h2", {}, trace.kernel.name + " ",
            make("small", {textContent: `${choice}${trace.kernel.idea}`})),
        this.sentence, this.line, ...failures);
    const totals = card("what the run has asked for", this.totals, this.bars);
    totals.classList.add("whole");
    this.grid = make("canvas");
    this.grid.onclick = event => this.enter(event);
    const shown =
        new Set(run.moments.filter((_, at) => run.column[at] >= 0).map(one => run.purpose(one)));
    const purposes = Object.entries(PURPOSES)
                         .filter(([name]) => shown.has(name))
                         .map(([name, text]) => colourKey(`var(--${name})`, text));
    this.gridCard = card(
        "all warps, each from its own start (click: go there)", this.grid,
        make(
            "div", {className: "legend"}, ...purposes,
            make("span", {textContent: "pale: few lanes are active"})));
    this.gridCard.classList.add("whole");
    this.code = make("div", {className: "card code", tabIndex: 0, ariaLabel: "source"});
    this.cells = COLOURS.map(
        colour => make(
            "div", {className: "lane", style: `--hue: ${colour}; border-top-color: ${colour}`}));
    this.lanesCard = card("the warp", make("div", {className: "lanes"}, ...this.cells));
    this.exchange = make("canvas");
    this.exchangeCard = card("lanes exchange values", this.exchange);
    this.arrays = run.arrays.map(array => this.makeArray(array));
    const lanes = COLOURS.filter((_, i) => i % 6 === 0).join(",");
    const keys = [
      [`linear-gradient(90deg, ${lanes})`, "used by a lane (colour: which)"],
      [
        "repeating-linear-gradient(135deg, var(--dragged) 0 1px, transparent 1px 4px)",
        "dragged along in its sector"
      ],
      ["var(--fetched)", "fetched before"], ["var(--written)", "written"],
      ...run.parts.length ? [["var(--ghost)", "ghost entry"]] : []
    ];
    const key = make("div", {className: "legend"}, ...keys.map(key => colourKey(...key)));
    this.memory = make("div", {className: "arrays"}, ...this.arrays.map(a => a.box));
    const memory = card("memory, in sectors of 32 bytes and lines of 128", this.memory, key);
    memory.classList.add("memory");
    this.picture = make("canvas");
    this.matrixCard = card("matrix", this.picture);
    this.devices = make("canvas");
    this.devicesCard = card("x on each GPU: own entries, then ghost entries", this.devices);
    this.devicesCard.hidden = !run.parts.length;
    this.giversText = make("p", {className: "small"});
    this.giversCard = card("from warp to warp", this.giversText);
    this.counters = make("canvas");
    this.countersCard = card("rows that the warps took from the counter", this.counters);
    this.countersCard.hidden = !run.arrays.some(isCounter);
    const left = make(
        "div", {className: "column"}, this.lanesCard, this.code, this.exchangeCard,
        this.countersCard, this.giversCard);
    const right = make("div", {className: "column"}, memory, this.devicesCard, this.matrixCard);
    this.box = make(
        "section", {className: "pane", ariaLabel: trace.kernel.name}, top, left, right,
        this.gridCard, totals);
    for (const [panel, cards] of Object.entries({
           now: [
             this.lanesCard, this.exchangeCard, this.countersCard, this.giversCard, memory,
             this.devicesCard
           ],
           source: [this.code],
           warps: [this.gridCard],
           matrix: [this.matrixCard],
           totals: [totals]
         }))
      for (const card of cards) card.dataset.panel = panel;
    this.box.addEventListener("pointerdown", () => {
      state.focus = number;
    });
    this.makeTotals();
    this.file = -1;
  }

  complaints() {
    const {trace} = this.run;
    const found = [];
    if (trace.truncated)
      found.push(
          "The trace reached its limit: the end of the run is missing, and totals are of a part of it.");
    if (!trace.verified && trace.failure)
      found.push(trace.failure.replace(/^.*? at (\S+:\d+, block )/s, "$1"));
    return found;
  }

  makeTotals() {
    const cells = words => words.map(word => make("td", {textContent: word}));
    this.totals.append(make("tr", {}, ...cells(["", "so far", "at the end", ""])));
    this.soFar = Object.entries(this.run.totals(this.run.count - 1)).map(([name, end]) => {
      const row =
          make("tr", {}, ...cells([name, "", end, COLUMNS[name] || COLUMNS[name.split(" ")[0]]]));
      row.dataset.name = name;
      this.totals.append(row);
      return row.cells[1];
    });
  }

  makeArray(array) {
    const canvas = make("canvas"), says = make("span", {className: "says"});
    const kind =
        array.space === "shared" ? "shared" : `${array.float ? "f" : "i"}${8 * array.element}`;
    const count = Math.floor(array.bytes / array.element);
    const where = array.space === "global" &&
            this.run.arrays.some(other => other.device !== 0 && other.space === "global") ?
        `, GPU ${array.device}` :
        "";
    const box = make(
        "div", {className: "array"},
        make(
            "div", {className: "name"}, make("b", {textContent: array.name}),
            make("span", {textContent: `${count.toLocaleString("en")} × ${kind}${where}`}), says),
        canvas);
    return {array, canvas, says, box, shown: 0};
  }

  // The moment m of the run, on all of the pane.
  show(m) {
    const {run} = this, moment = run.moments[m];
    this.request = ACCESSES.has(moment.kind) || (moment.kind === "warp operation") ?
        run.request(moment) :
        null;
    this.moment = moment;
    this.m = m;
    this.asked = quiz.asks(moment);
    this.sentence.replaceChildren(
        ...this.asked ? quiz.question(this) :
                        [...quiz.verdict(moment), ...describe(run, moment, this.request)]);
    const totals = run.totals(this.asked ? m - 1 : m);
    Object.values(totals).forEach((text, i) => {
      this.soFar[i].textContent = text;
    });
    this.states = run.lanesAt(moment.warp, m);
    this.showBars(this.asked ? m : m + 1);
    this.drawGrid();
    this.showLanes();
    this.showSource();
    this.showExchange();
    this.showGivers();
    if (!this.countersCard.hidden) this.drawCounters();
    for (const array of this.arrays) {
      array.box.hidden = !this.isShown(array.array);
      if (array.box.hidden) continue;
      array.array.space === "shared" ? this.drawBanks(array) : this.drawStrip(array);
    }
    const touched = this.arrays.find(({box}) => !box.hidden && !box.classList.contains("idle"));
    if (touched) scrollInto(this.memory, touched.box);
    if (run.parts.length) this.drawDevices();
    this.drawMatrix();
  }

  // What was asked of the L1 caches, what these asked of the L2, and what that asked of DRAM,
  // beside what is needed.
  showBars(end) {
    const {sums, count, parts, trace: {compulsory_bytes: needed}} = this.run;
    if (parts.length || !needed) return;
    const most = Math.max(needed, sums.sectors[count] * SECTOR);
    const bar = (name, bytes, title) => make(
        "div", {}, make("span", {textContent: name}),
        make("i", {}, make("u", {style: `width: ${100 * bytes / most}%`})),
        make("b", {textContent: `${number(bytes / 1e3)} kB`}), make("small", {textContent: title}));
    this.bars.replaceChildren(
        ...[[
          "asked for", "sectors", "what the requests of all warps touch: the L1 caches are asked"
        ],
            [
              "from L2", "l2Sectors",
              `what the L1 of the block's multiprocessor does not have (simt's model of the caches of an ${
                  this.run.trace.caches_of})`
            ],
            [
              "from DRAM", "dramSectors",
              "what the L2 does not have, either, at the first product (stored sectors are written, not read)"
            ]]
            .map(([name, sum, title]) => bar(name, sums[sum][end] * SECTOR, title)),
        bar("needed", needed, "the matrix, x and y, each once"));
  }

  // --- All warps
  // ------------------------------------------------------------------------------------

  // A row per warp, its requests from left to right; launches beside each other.
  drawGrid() {
    const {run, m, moment} = this, warps = run.launches.map(() => []);
    for (const warp of run.warps.values()) warps[warp.launch].push(warp);
    const most = Math.max(1, ...warps.map(list => list.length)),
          height = Math.min(160, Math.max(24, 9 * most));
    const {context, width} = prepare(this.grid, height), gap = 8;
    const columns = run.columns.reduce((sum, n) => sum + n, 0),
          wide = Math.max(.01, (width - gap * (warps.length - 1)) / columns),
          tall = Math.min(14, height / most);
    let left = 0;
    const lefts = run.columns.map((n, launch) => {
      const at = left;
      left += n * wide + (n ? gap : 0);
      return at;
    });
    const rows = new Map(warps.flatMap(
        list => list.sort((a, b) => a.block - b.block || a.warp - b.warp)
                    .map((warp, row) => [warp, row])));
    this.layout = {lefts, wide, tall, warps};
    const place =
        (moment, column) => [lefts[moment.launch] + column * wide, rows.get(moment.warp) * tall];
    if (!this.still || this.still.width !== this.grid.width || state.redraw) {
      const colours =
          Object.fromEntries(Object.keys(PURPOSES).map(name => [name, css(`--${name}`)]));
      run.moments.forEach((one, at) => {
        if (run.column[at] < 0) return;
        context.fillStyle = colours[run.purpose(one)];
        context.globalAlpha = .25 + .75 * lanesOf(one.mask).length / LANES;
        context.fillRect(
            ...place(one, run.column[at]), Math.max(.7, wide - (wide > 3 ? .7 : 0)),
            Math.max(.7, tall - (tall > 3 ? 1 : 0)));
      });
      this.still = Object.assign(
          document.createElement("canvas"), {width: this.grid.width, height: this.grid.height});
      this.still.getContext("2d").drawImage(this.grid, 0, 0);
    } else
      context.drawImage(this.still, 0, 0, width, height);
    if (!moment.warp) return;
    const [x, y] = place(moment, Math.max(0, run.column[m]));
    context.globalAlpha = 1;
    strokeBox(
        context, lefts[moment.launch], y - .5, run.columns[moment.launch] * wide, tall,
        css("--ink"), 1.5);
    strokeBox(context, x, y, Math.max(2, wide), Math.max(2, tall - 1), css("--ink"), 3);
    this.gridCard.says.textContent = `${plural(warps[moment.launch].length, "warp")}; block ${
        moment.block}, warp ${moment.warp.warp}, its request ${Math.max(0, run.column[m]) + 1}`;
  }

  // To what was clicked on.
  enter({offsetX, offsetY}) {
    const {run, layout: {lefts, wide, tall, warps}} = this;
    let launch = lefts.length - 1;
    while (launch > 0 && lefts[launch] > offsetX) --launch;
    const warp = warps[launch][Math.min(warps[launch].length - 1, Math.floor(offsetY / tall))];
    if (!warp) return;
    const column = (offsetX - lefts[launch]) / wide,
          moments = warp.moments.filter(m => run.column[m] >= 0);
    goTo(this.number, moments.findLast(m => run.column[m] <= column) ?? moments[0]);
  }

  showLanes() {
    const {run, moment, m, request} = this, {warp} = moment;
    const launch = run.launches[moment.launch];
    // A name is cut so that what stands behind it is seen.
    const {clientWidth, clientHeight} = this.cells[0], style = getComputedStyle(this.cells[0]),
                        size = parseFloat(style.fontSize);
    const room = Math.floor((clientWidth - 2 * parseFloat(style.paddingLeft)) / (.605 * size)),
          most = Math.min(3, Math.floor((clientHeight - 15) / (1.25 * size)));
    const fit = (name, text) => (name.length + text.length > room ?
                                     `${name.slice(0, Math.max(1, room - text.length - 1))}…` :
                                     name) +
        text;
    this.lanesCard.says.textContent = warp ?
        `${run.parts.length ? `GPU ${launch.device}, ` : ""}launch ${moment.launch + 1} of ${
            run.launches.length}, ${launch.kernel}, block ${moment.block} of ${
            launch.grid[0]}, warp ${warp.warp}` :
        "";
    this.cells.forEach((cell, id) => {
      const lane = this.states[id];
      let name = "active";
      if (!warp || warp.last[id] < 0)
        name = "absent";
      else if (warp.last[id] < m)
        name = "returned";
      else if (!(moment.mask >>> id & 1))
        name = "waiting";
      cell.className = `lane ${name}`;
      cell.classList.toggle("wrong", (moment.wrong || []).some(row => row.lane === id));
      cell.style.borderTopColor = name === "active" ? COLOURS[id] : "";
      const lines = [];
      if (name !== "absent") {
        for (const [variable, value] of lane.vars) lines.push([variable, ` ${short(value)}`]);
        const {array, element} = lane.last;
        if (array && !lane.last.named) lines.push([array.name, `[${element}]`]);
      }
      const chosen = this.choose(lines, most);
      const word = {
        active: "",
        waiting: lane.did === "wait" ? "barrier" : "waits",
        returned: run.failed ? "stopped" : "returned",
        absent: "none"
      }[name];
      cell.replaceChildren(
          make("span", {className: "state", textContent: word}), make("b", {textContent: id}),
          ...chosen.map(line => make("span", {textContent: fit(...line)})));
      cell.title = `lane ${id}: ${name}` +
          (lines.length ? `; ${lines.map(line => line.join("")).join(", ")}` : "");
    });
  }

  // As many variables as fit: row, index and sum before others.
  choose(lines, most) {
    const rank = ([name]) => /^(row|k|sum)$/.test(name) ? 0 : /^row_/.test(name) ? 2 : 1;
    return lines.map((line, i) => [rank(line), i, line])
        .sort((a, b) => a[0] - b[0] || a[1] - b[1])
        .slice(0, most)
        .sort((a, b) => a[1] - b[1])
        .map(entry => entry[2]);
  }

  // --- Source
  // ---------------------------------------------------------------------------------------

  showSource() {
    const {run, moment} = this;
    this.line.innerHTML = "&nbsp;";
    if (moment.place < 0) {  // a launch: what will run is shown
      const first = run.moments.find(({place}) => place >= 0);
      if (this.file < 0 && first) this.loadSource(run.source(first.place).file);
      return;
    }
    const {file, line} = run.source(moment.place);
    if (file !== this.file) this.loadSource(file);
    const counts = new Map();
    this.states.forEach((lane, id) => {
      if (lane.place < 0 || moment.warp.last[id] < this.m) return;
      const at = run.source(lane.place);
      if (at.file === file) counts.set(at.line, (counts.get(at.line) || 0) + 1);
    });
    for (const row of this.marked || []) {
      row.classList.remove("now");
      row.children[1].textContent = "";
      row.children[2].innerHTML = row.dataset.html;
    }
    this.marked = [];
    const mark = number => {
      const row = this.rows.get(number);
      if (row && !this.marked.includes(row)) this.marked.push(row);
      return row;
    };
    for (const [number, count] of counts) {
      const row = mark(number);
      if (row) row.children[1].textContent = `◂${count}`;
    }
    const row = mark(line);
    if (!row) return;
    row.classList.add("now");
    row.children[1].textContent = `▸${lanesOf(moment.mask).length}`;
    if (moment.array)
      row.children[2].innerHTML = row.dataset.html.replace(
          new RegExp(`(?<![\\w">])(${moment.array.name}(\\[[^\\]<]*\\])?)`), "<mark>$1</mark>");
    this.line.innerHTML = row.children[2].innerHTML.trim();
    this.line.classList.toggle("differs", row.classList.contains("differs"));
    scrollInto(this.code, row);
  }

  loadSource(file) {
    this.file = file;
    const source = this.run.trace.sources[file], pre = make("pre");
    const {text: other, name} = this.run.versionBeside(source, runs);
    const differing = other ? differingLines(source.text, other) : new Set();
    this.rows = new Map();
    source.text.split("\n").forEach((line, i) => {
      if (/^\s*\/\/ exercise: /.test(line)) return;
      const row = make(
          "div", {className: differing.has(i) ? "differs" : ""}, make("i", {textContent: i + 1}),
          make("em"), make("code"));
      row.dataset.html = highlight(line) || " ";
      row.children[2].innerHTML = row.dataset.html;
      this.rows.set(i + 1, row);
      pre.append(row);
    });
    this.code.replaceChildren(
        make(
            "h3", {}, source.file,
            ...differing.size ? [colourKey("var(--differs)", `not as in ${name}`)] : []),
        pre);
    this.marked = [];
  }

  // --- Shuffles and votes
  // ---------------------------------------------------------------------------

  // The warp operations that follow each other up to this moment, one above the other: a tree.
  showExchange() {
    const {run, moment, m} = this;
    const rounds = [];
    if (moment.warp && moment.kind === "warp operation") {
      const before = moment.warp.moments;
      for (let i = before.indexOf(m); i >= 0 && rounds.length < 5; --i) {
        const other = run.moments[before[i]];
        if (other.kind === "at") continue;
        if (other.kind !== "warp operation") break;
        rounds.unshift(other);
      }
    }
    this.exchangeCard.style.display = rounds.length ? "" : "none";
    if (!rounds.length) return;
    const height = 46, {context, width} = prepare(this.exchange, rounds.length * height + 14);
    const x = lane => (lane + .5) * width / LANES;
    this.exchangeCard.says.textContent = moment.instruction.operation;
    rounds.forEach((round, i) => {
      const {lanes, operands, results, sources} = run.request(round);
      const top = 8 + i * height, bottom = top + height - 14;
      const current = i === rounds.length - 1;
      context.globalAlpha = current ? 1 : .55;
      context.lineWidth = current ? 1.6 : 1;
      lanes.forEach((lane, j) => {
        if (sources) strokeLine(context, x(sources[j]), top, x(lane), bottom, COLOURS[sources[j]]);
        const on = sources || (operands && operands[j] !== 0);
        dot(context, x(lane), top, on ? 4 : 2, COLOURS[lane]);
        if (results) dot(context, x(lane), bottom, 3, COLOURS[sources ? sources[j] : lane]);
      });
      context.fillStyle = css("--soft");
      context.font = "10px system-ui, sans-serif";
      if (!sources)
        context.fillText(
            `${round.instruction.operation}${results ? ` → ${show(results[0])}` : ""}`, 4,
            top + 20);
    });
    context.globalAlpha = 1;
  }

  // --- From warp to warp
  // ----------------------------------------------------------------------------

  // Who left the values that this request finds: a carry, a product, a flag, a ticket.
  showGivers() {
    const {moment, run} = this, {givers} = moment;
    this.giversCard.style.display = givers ? "" : "none";
    if (!givers) return;
    const array = this.request.array;
    const name = warp => (run.parts.length ? `GPU ${run.launches[warp.launch].device}, ` : "") +
        (warp.launch !== moment.launch && !run.parts.length ? `launch ${warp.launch + 1}, ` : "") +
        (run.launches[warp.launch].grid[0] > 1 ? `block ${warp.block}, ` : "") +
        `warp ${warp.warp}`;
    const count = [...givers.values()].reduce((sum, elements) => sum + elements.length, 0);
    this.giversCard.says.textContent =
        `${name(moment.warp)} reads ${plural(count, "element")} of ${array.name} that others left`;
    const value = element => {
      const writes = (array.writes.get(element) || []).filter(write => write[0] < this.m);
      return writes.length ? ` = ${show(writes[writes.length - 1][1], array)}` : "";
    };
    this.giversText.textContent = [...givers.keys()]
                                      .slice(0, 4)
                                      .map(warp => {
                                        const [first] = givers.get(warp),
                                              more = givers.get(warp).length - 1;
                                        return `${array.name}[${first}]${value(first)}${
                                            more ? ` and ${more} more` : ""} from ${name(warp)}`;
                                      })
                                      .join("; ") +
        (givers.size > 4 ? "; ..." : ".");
  }

  drawCounters() {
    const {run, m} = this;
    const fetches = run.arrays.filter(isCounter).flatMap(
        array => array.fetches.map(fetch => ({...fetch, key: `${array.name}[${fetch.element}]`})));
    const keys = [...new Set(fetches.map(fetch => fetch.key))].slice(0, 6), step = 30;
    const {context, width} = prepare(this.counters, keys.length * step + 2);
    const last = run.matrix.rows;
    context.font = "10.5px system-ui, sans-serif";
    keys.forEach((key, k) => {
      const done = fetches.filter(fetch => fetch.key === key && fetch.m <= m), y = 12 + k * step;
      for (const {before, after, warp, m: at} of done) {
        if (before >= last) continue;
        context.globalAlpha = at === m ? 1 : .6;
        fillBox(
            context, before / last * width, y,
            Math.max(1, (Math.min(after, last) - before) / last * width - .5), 12,
            COLOURS[warp.warp % LANES]);
      }
      context.globalAlpha = 1;
      strokeBox(context, .5, y + .5, width - 1, 12, css("--edge"));
      context.fillStyle = css("--soft");
      const now = done[done.length - 1];
      context.fillText(`${key}${now ? `: ${now.after}` : ""}`, 0, y - 3);
    });
    const now = fetches.filter(fetch => fetch.m <= m).pop();
    this.countersCard.says.textContent = !now ?
        `${run.matrix.rows} rows` :
        now.before >= run.matrix.rows ?
        `warp ${now.warp.warp} of block ${now.warp.block} found none left` :
        `warp ${now.warp.warp} of block ${now.warp.block} took row${
            now.after - now.before === 1 ?
                ` ${now.before}` :
                `s ${now.before} to ${Math.min(now.after, run.matrix.rows) - 1}`}`;
  }

  // --- Several GPUs
  // -----------------------------------------------------------------------------------

  // Where there are several GPUs, only the arrays that this launch touches, or that are copied.
  isShown(array) {
    const {run, moment} = this;
    if (!run.parts.length) return true;
    if (moment.kind === "copy") return array === moment.to || array === moment.from;
    return moment.launch >= 0 && run.touchedBy[moment.launch].has(array);
  }

  // The buffers of x of all GPUs, and what travels between them at this moment.
  drawDevices() {
    const {run, moment, m, request} = this;
    const rows = run.parts.flatMap(
        (part, device) =>
            run.arrays.filter(array => array.part === part).map(array => ({device, array})));
    const step = 40, {context, width} = prepare(this.devices, rows.length * step + 4);
    const left = 52, count = Math.max(...run.parts.map(part => part.columns.length)),
          w = (width - left) / count;
    const middle = element => left + (element + .5) * w;
    const rowOf = array => rows.findIndex(row => row.array === array);
    const running =
        moment.launch >= 0 && moment.kind !== "copy" ? run.launches[moment.launch].device : -1;
    this.devicesCard.says.textContent = running >= 0 ? `GPU ${running} executes` : "";
    context.font = "11px system-ui, sans-serif";
    rows.forEach(({device, array}, r) => {
      const y = 6 + r * step, tall = 15, own = array.part.rows.length;
      context.fillStyle = css(device === running ? "--ink" : "--soft");
      context.fillText(`GPU ${device}`, 0, y + 8);
      context.fillText(
          `x, ${rows.slice(0, r).filter(row => row.device === device).length ? "odd" : "even"}`, 0,
          y + 20);
      array.part.columns.forEach((column, element) => {
        if (column < 0) return;
        const writes = array.writes.get(element), x = left + element * w;
        fillBox(
            context, x, y, w, tall,
            css(writes && writes[0][0] <= m ? "--written" :
                    element >= own          ? "--ghost" :
                                              "--never"));
      });
      strokeBox(context, left + .5, y + .5, own * w, tall, css("--edge"));
      const ghosts =
          array.part.columns.map((column, element) => column >= 0 && element >= own ? element : -1)
              .filter(element => element >= 0);
      if (ghosts.length) {
        strokeBox(
            context, left + ghosts[0] * w + .5, y + .5,
            (ghosts[ghosts.length - 1] - ghosts[0] + 1) * w, tall, css("--soft"));
      }
    });
    const arrow = (fromArray, fromElement, toArray, toElement, colour) => {
      const from = rowOf(fromArray), to = rowOf(toArray);
      if (to < 0) return;
      context.lineWidth = 1.2;
      const y = row => 6 + row * step + 7;
      const begin = from < 0 ? [middle(toElement), y(to) - 14] : [middle(fromElement), y(from)];
      strokeLine(context, ...begin, middle(toElement), y(to), colour);
      dot(context, middle(toElement), y(to), 2.5, colour);
    };
    if (moment.kind === "copy" && moment.to) {
      for (let at = 0; at < moment.bytes; at += moment.to.element) {
        arrow(
            moment.from, (moment.fromOffset + at) / moment.to.element, moment.to,
            (moment.toOffset + at) / moment.to.element, css("--accent"));
      }
    }
    // What a lane stores into another GPU's x is the entry of the same column, on its own.
    if (request && request.array && request.array.part && run.overLink(moment)) {
      request.lanes.forEach((lane, i) => {
        const element = Math.floor(request.addresses[i] / request.array.element);
        const column = request.array.part.columns[element];
        const parity = rows.filter(row => row.device === request.array.device)
                           .findIndex(row => row.array === request.array);
        const own = rows.filter(row => row.device === running)[parity];
        const place = own ? own.array.part.columns.indexOf(column) : -1;
        arrow(place >= 0 ? own.array : null, place, request.array, element, COLOURS[lane]);
      });
    } else if (request && request.array && rowOf(request.array) >= 0) {
      request.lanes.forEach((lane, i) => {
        const element = Math.floor(request.addresses[i] / request.array.element);
        fillBox(
            context, left + element * w, 6 + rowOf(request.array) * step, Math.max(1.5, w), 15,
            COLOURS[lane]);
      });
    }
  }

  // --- Arrays
  // ---------------------------------------------------------------------------------------

  // Which rows of a strip are shown: those that are touched, then their neighbours.
  // (As many rows as were needed once, up to `limit`: a page that grows and shrinks cannot be
  // read.)
  window(made, rows, touched, limit) {
    const touchedRows = [...new Set(touched)].sort((a, b) => a - b);
    const least = this.memory.clientWidth < 700 ? 1 : 3;
    const most = made.most = Math.max(made.most || least, Math.min(limit, touchedRows.length));
    if (rows <= most) return Array.from({length: rows}, (_, i) => i);
    const chosen = new Set(touchedRows.slice(0, most));
    if (!chosen.size) chosen.add(Math.min(made.shown, rows - 1));
    made.shown = Math.min(...chosen);
    for (let distance = 1; chosen.size < most && distance < rows; ++distance) {
      for (const row of [...chosen]) {
        for (const other of [row + distance, row - distance]) {
          if (chosen.size < most && other >= 0 && other < rows) chosen.add(other);
        }
      }
    }
    return [...chosen].sort((a, b) => a - b);
  }

  usedBy(made) {
    const used = new Map();  // element -> lanes
    const {request, moment} = this;
    if (moment.kind === "copy") {
      const begin = made.array === moment.to ? moment.toOffset :
          made.array === moment.from         ? moment.fromOffset :
                                               0;
      const bytes = made.array === moment.to || made.array === moment.from ? moment.bytes : 0;
      for (let at = 0; at < bytes; at += made.array.element)
        used.set((begin + at) / made.array.element, [0]);
      return used;
    }
    if (!request || request.array !== made.array || this.asked) return used;
    request.addresses.forEach((address, i) => {
      for (let at = address; at < address + moment.instruction.size; at += made.array.element) {
        addTo(used, Math.floor(at / made.array.element), request.lanes[i]);
      }
    });
    return used;
  }

  drawStrip(made) {
    const {array, canvas, says, box} = made;
    const used = this.usedBy(made), m = this.m, counts = used.size ? this.moment.counts : null;
    box.className = used.size ? "array" : "array idle";
    const own =
        array.part ? array.part.rows.length : Infinity;  // elements from here on are ghost entries
    says.textContent = counts ?
        `${plural(counts.sectors, "sector")} touched, ${counts.ideal} needed; ${
            Math.round(100 * counts.used / counts.sectors / SECTOR)}% used` :
        "";
    const perSector = Math.max(1, SECTOR / array.element),
          sectors = Math.ceil(array.bytes / SECTOR);
    const available = canvas.parentNode.clientWidth || 600, gap = 6;
    const perRow = Math.max(1, Math.floor((available + gap) / (128 + gap)));
    const wide = ((available + gap) / perRow - gap) / 4, line = 4 * wide + gap,
          rows = Math.ceil(sectors / 4 / perRow);
    const rowOf = sector => Math.floor(Math.floor(sector / 4) / perRow);
    const touched = new Set([...used.keys()].map(element => Math.floor(element / perSector)));
    const shownRows = this.window(made, rows, [...touched].map(rowOf), 7);
    const tall = 15, step = 19;
    const {context, width} = prepare(canvas, shownRows.length * step + 6);
    // All of the array, in a line.
    fillBox(context, 0, 0, width, 3, css("--line"));
    const scale = width / sectors;
    context.fillStyle = css("--accent");
    for (const sector of touched) context.fillRect(sector * scale, 0, Math.max(1.5, scale), 3);
    context.globalAlpha = .35;
    for (let s = 0; s < sectors; ++s)
      if (array.fetched[s] < m) context.fillRect(s * scale, 0, Math.max(.6, scale), 3);
    context.globalAlpha = 1;
    const colours = {
      never: css("--never"),
      fetched: css("--fetched"),
      written: css("--written"),
      ghost: css("--ghost"),
      edge: css("--edge"),
      dragged: css("--dragged")
    };
    shownRows.forEach((row, r) => {
      const y = 6 + r * step;
      for (let sector = row * perRow * 4; sector < Math.min(sectors, (row + 1) * perRow * 4);
           ++sector) {
        const inRow = sector - row * perRow * 4;
        const x = Math.floor(inRow / 4) * line + inRow % 4 * wide;
        const elements =
            Math.min(perSector, Math.ceil((array.bytes - sector * SECTOR) / array.element));
        const w = wide / perSector;
        fillBox(
            context, x, y, elements * w, tall,
            array.fetched[sector] < m ? colours.fetched : colours.never);
        for (let e = 0; e < elements; ++e) {
          const element = sector * perSector + e, writes = array.writes.get(element);
          if (element >= own && array.part.columns[element] >= 0) {
            fillBox(context, x + e * w, y, w, tall, colours.ghost);
          }
          if (writes && writes[0][0] <= m) fillBox(context, x + e * w, y, w, tall, colours.written);
          const lanes = used.get(element);
          if (lanes) {
            fillBox(context, x + e * w + .5, y + .5, w - 1, tall - 1, COLOURS[lanes[0]]);
          } else if (touched.has(sector)) {
            hatch(context, x + e * w, y, w, tall, colours.dragged);
          }
        }
        strokeBox(
            context, x + .5, y + .5, elements * w - 1, tall - 1,
            touched.has(sector) ? css("--ink") : colours.edge);
      }
      if (r > 0 && shownRows[r - 1] !== row - 1)
        fillBox(context, 0, y - 3, width, .8, css("--soft"));
    });
  }

  // Shared memory: a column per bank; rows of 32 words.
  drawBanks(made) {
    const {array, canvas, says, box} = made;
    const used = this.usedBy(made), counts = used.size ? this.moment.counts : null;
    box.className = used.size ? "array" : "array idle";
    says.textContent = counts ?
        `${plural(counts.passes, "pass")} over the banks, ${counts.idealPasses} without conflicts` :
        "";
    const words = new Map();
    for (const [element, lanes] of used) {
      for (let part = 0; part < Math.max(1, array.element / BANK_BYTES); ++part)
        words.set((element * array.element + array.offset) / BANK_BYTES + part | 0, lanes);
    }
    const first = Math.floor(array.offset / BANK_BYTES / BANKS),
          last = Math.floor((array.offset + array.bytes - 1) / BANK_BYTES / BANKS);
    const rows = last - first + 1;
    const shownRows =
        this.window(made, rows, [...words.keys()].map(word => Math.floor(word / BANKS) - first), 8);
    const step = 12, {context, width} = prepare(canvas, shownRows.length * step + 12);
    const w = width / BANKS;
    const load = new Array(BANKS).fill(0);
    for (const word of words.keys()) ++load[word % BANKS];
    context.font = "9px system-ui, sans-serif";
    context.textAlign = "center";
    const most = Math.max(1, (array.element / BANK_BYTES));
    for (let bank = 0; bank < BANKS; ++bank) {
      context.fillStyle = load[bank] > 1 && counts && counts.passes > counts.idealPasses ?
          css("--bad") :
          css("--soft");
      context.fillText(
          load[bank] > most ? `${load[bank]}×` :
              bank % 4 === 0 ? String(bank) :
                               "",
          (bank + .5) * w, 8);
    }
    context.textAlign = "left";
    shownRows.forEach((row, r) => {
      for (let bank = 0; bank < BANKS; ++bank) {
        const word = (first + row) * BANKS + bank, byte = word * BANK_BYTES - array.offset;
        if (byte < 0 || byte >= array.bytes) continue;
        const writes = array.writes.get(Math.floor(byte / array.element)), lanes = words.get(word);
        fillBox(
            context, bank * w + .5, 11 + r * step, w - 1, step - 2,
            lanes                                ? COLOURS[lanes[0]] :
                writes && writes[0][0] <= this.m ? css("--written") :
                                                   css("--never"));
        strokeBox(
            context, bank * w + 1, 11.5 + r * step, w - 2, step - 3,
            lanes ? css("--ink") : css("--edge"));
      }
    });
  }

  // --- Matrix
  // ---------------------------------------------------------------------------------------

  drawMatrix() {
    const {run, m} = this, {rows, columns, nonzeros, row_offsets: offsets} = run.matrix;
    this.matrixCard.hidden = !rows;  // a puzzle has no matrix (common/primer)
    if (!rows) return;
    const available = this.picture.parentNode.clientWidth - 20, now = this.nonzerosNow();
    let done = 0;
    for (let k = 0; k < nonzeros; ++k) done += run.doneAt[k] <= m;
    this.matrixCard.says.textContent = `${rows} × ${columns}; ${done.toLocaleString("en")} of ${
                                           plural(nonzeros, "nonzero")} begun` +
        (now.length ? `, ${now.length} now` : "");
    const small = Math.max(rows, columns) <= 48;
    const whole = small ? Math.min(available, 330) : 150,
          height = small ? whole * Math.min(1, rows / columns) + 2 : 232;
    const {context} = prepare(this.picture, Math.max(24, height));
    const cell = Math.min(14, (whole - 2) / Math.max(rows, columns));
    this.drawPart(
        context, now, small ? (available - cell * columns) / 2 : 0, 0, cell, [0, rows, 0, columns]);
    if (small) return;
    // What is being multiplied, enlarged, and where that is.
    const part = this.partOf(now), [top, bottom, left, right] = part;
    const room = available - whole - 24,
          each = Math.min(14, room / (right - left), 230 / (bottom - top));
    this.drawPart(context, now, whole + 24, 0, each, part);
    strokeBox(
        context, left * cell + .5, top * cell + .5, (right - left) * cell, (bottom - top) * cell,
        css("--ink"));
  }

  // The rows and columns to enlarge: around the nonzeros of now, else where it was.
  partOf(now) {
    const {rows, columns, column_indices: indices} = this.run.matrix;
    const fit = (values, count, least, most) => {
      let low = Math.min(...values) - 2, high = Math.max(...values) + 3;
      const missing = Math.max(0, least - (high - low));
      low -= missing >> 1;
      high = Math.min(low + most, high + (missing + 1 >> 1));
      if (low < 0) [low, high] = [0, high - low];
      if (high > count) [low, high] = [Math.max(0, low - (high - count)), count];
      return [low, high];
    };
    if (now.length)
      this.part = [
        ...fit(now.map(([, k]) => this.run.rowOf[k]), rows, 16, 64),
        ...fit(now.map(([, k]) => indices[k]), columns, 32, 128)
      ];
    return this.part || [0, Math.min(rows, 24), 0, Math.min(columns, 48)];
  }

  drawPart(context, now, x, y, cell, [top, bottom, left, right]) {
    const {run, m} = this, {row_offsets: offsets, column_indices: indices} = run.matrix;
    strokeBox(
        context, x + .5, y + .5, cell * (right - left) + 1, cell * (bottom - top) + 1,
        css("--edge"));
    const size = Math.max(1, cell - (cell > 4 ? 1 : 0));
    const colours = [css("--dragged"), css("--accent")];
    for (const pass of [0, 1]) {
      context.fillStyle = colours[pass];
      context.globalAlpha = pass ? .6 : .4;
      for (let row = top; row < bottom; ++row) {
        for (let k = offsets[row]; k < offsets[row + 1]; ++k) {
          const column = indices[k];
          if (column < left || column >= right || (run.doneAt[k] <= m) !== (pass === 1)) continue;
          context.fillRect(x + 1 + (column - left) * cell, y + 1 + (row - top) * cell, size, size);
        }
      }
    }
    context.globalAlpha = 1;
    const big = Math.max(2, cell);
    for (const [lane, k] of now) {
      const row = run.rowOf[k], column = indices[k];
      if (row < top || row >= bottom || column < left || column >= right) continue;
      fillBox(
          context, x + 1 + (column - left + .5) * cell - big / 2,
          y + 1 + (row - top + .5) * cell - big / 2, big, big, COLOURS[lane]);
    }
  }

  // Those of this moment, or of the last request of the same line that had some.
  nonzerosNow() {
    const {run, moment, m} = this;
    if (!moment.warp || !moment.instruction) return [];
    const {moments} = moment.warp;
    for (let i = moments.indexOf(m); i >= 0; --i) {
      const other = run.moments[moments[i]];
      if (other.instruction && other.instruction.line !== moment.instruction.line) return [];
      if (run.nonzerosOf.has(moments[i]))
        return run.nonzerosOf.get(moments[i]).filter(([lane]) => moment.mask >>> lane & 1);
      if (!other.instruction) return [];
    }
    return [];
  }
}

// --- Words
// ------------------------------------------------------------------------------------------

function ranges(lanes) {
  const found = [];
  for (const lane of lanes) {
    const last = found[found.length - 1];
    if (last && last[1] === lane - 1)
      last[1] = lane;
    else
      found.push([lane, lane]);
  }
  return found.map(
                  ([a, b]) => a === b ? `${a}` :
                      b === a + 1 ? `${a}, ${b}` :
                                    `${a} to ${b}`)
      .join(", ");
}

const bold = text => make("b", {textContent: text});

// Which lanes, as the subject of a sentence.
function whoOf(lanes) {
  return lanes.length === LANES ? "all 32 lanes" :
      lanes.length > 6 && ranges(lanes).length > 24 ?
                                  plural(lanes.length, "lane") :
                                  `${lanes.length === 1 ? "lane" : "lanes"} ${ranges(lanes)}`;
}

function describeGivers({givers, block}) {
  if (!givers) return "";
  const named = giver =>
      `${giver.block === block ? "" : `block ${giver.block}, `}warp ${giver.warp}`;
  const who = givers.size > 3 ?
      `${givers.size} other warps have` :
      [...givers.keys()].map(named).join(" and ") + (givers.size > 1 ? " have" : " has");
  return ` What it finds there ${who} left.`;
}

// What a moment leaves wrong in y.
function describeWrong([wrong, ...others]) {
  return wrong ? [make("b", {
    className: "wrong",
    textContent: ` Lane ${wrong.lane} leaves y[${wrong.row}] = ${show(wrong.got ?? "nan")}, ` +
        `which should be ${show(wrong.expected)}${
                     others.length ? `; ${others.length} more are wrong` : ""}.`
  })] :
                 [];
}

// The request of an access to global memory: what it touches, and where that comes from.
function describeSectors(run, {counts, kind}, {lanes, addresses}) {
  const share = Math.round(100 * counts.used / counts.sectors / SECTOR);
  const distinct = new Set(addresses).size;
  const same = kind === "atomic" && distinct < lanes.length ?
      ` ${plural(distinct, "address")}: lanes on the same one take turns.` :
      "";
  const fewer = counts.sectors > counts.ideal ?
      `${counts.ideal} would hold ${counts.used === 1 ? "it" : "what is used"}.` :
      "That is the fewest.";
  const [l1, l2] = [counts.sectors - counts.l2, counts.l2 - counts.dram];
  const cached = !run.trace.caches_of || kind !== "load" ?
      "" :
      ` The L1 cache has ${l1} of them, the L2 ${l2}; ${counts.dram} come${
          counts.dram === 1 ? "s" : ""} from DRAM.`;
  return [
    "The request touches ",
    bold(`${plural(counts.sectors, "sector")} in ${plural(counts.lines, "line")}`),
    ` and uses ${counts.used.toLocaleString("en")} of ${
        (counts.sectors * SECTOR).toLocaleString("en")} bytes (${share}%). ${fewer}${cached}${same}`
  ];
}

function describeAccess(run, moment, request, who, one) {
  const {array} = request, {counts, kind, instruction} = moment;
  const verb = {load: "load", store: "store", atomic: "update"}[kind] + (one ? "s" : "");
  const link = run.overLink(moment) ? ` on GPU ${array.device}, over the link` : "";
  const first = [
    bold(`${who} ${verb} ${array.name}${link}`),
    `, ${instruction.size} bytes each${kind === "atomic" ? ", atomically" : ""}. `
  ];
  const givers = describeGivers(moment);
  if (array.space === "shared") {
    const extra = counts.passes > counts.idealPasses ?
        [bold(`Bank conflict: ${counts.passes} passes`), ` instead of ${counts.idealPasses}.`] :
        [`The banks serve it in ${plural(counts.passes, "pass")}.`];
    return [...first, ...extra, givers];
  }
  return [
    ...first, ...describeSectors(run, moment, request), givers, ...describeWrong(moment.wrong || [])
  ];
}

function describeOperation({operation}, {sources, results, lanes}, who, one) {
  if (!sources)
    return [
      bold(`${operation}: ${who} ${one ? "meets" : "meet"}`),
      results ? `; the result is ${show(results[0])}.` : " and see what the others wrote."
    ];
  const distances = new Set(sources.map((source, i) => source - lanes[i]).filter(d => d));
  const [distance] = distances;
  const how = distances.size === 1 ?
      `each from the lane ${Math.abs(distance)} ${distance > 0 ? "above" : "below"}` :
      distances.size ? "each from the lane it names" :
                       "each its own";
  return [
    bold(`${operation}: ${who} ${one ? "takes" : "take"} a value`),
    `, ${how}. No memory is involved.`
  ];
}

// What the host does, or the launch as a whole.
const OF_HOST = {
  barrier: () => [bold("All threads of the block have reached the barrier"), " and go on."],
  launch(run, moment) {
    const launch = run.launches[moment.launch];
    const blocks = launch.grid.reduce((a, b) => a * b),
          threads = launch.block.reduce((a, b) => a * b);
    return [
      bold(`Launch ${moment.launch + 1}: ${launch.kernel}`),
      `, ${plural(blocks, "block")} of ${plural(threads, "thread")}${
          run.launches.some(l => l.device) ? `, on GPU ${launch.device}, stream ${launch.stream}` :
                                             ""}.`
    ];
  },
  copy(run, moment) {
    const [, to, , from, , bytes] = run.trace.events[moment.event];
    const name = array => array === null ?
        "the host" :
        `${run.arrays[array].name} on GPU ${run.arrays[array].device}`;
    const ghosts = to !== null && run.arrays[to].part &&
        moment.toOffset >= run.arrays[to].part.rows.length * run.arrays[to].element;
    return [
      bold(`A copy of ${plural(bytes, "byte")}`),
      ` goes from ${name(from)} to ${ghosts ? "the ghost entries of " : ""}${name(to)}.`
    ];
  },
  record: (run, moment) =>
      [bold(`An event is recorded on ${streamOf(run, moment.stream)}`),
       ": it happens when all work on that stream so far is done."],
  "stream wait": (run, moment) =>
      [bold(`What follows on ${streamOf(run, moment.stream)} waits for an event`),
       ` of ${streamOf(run, moment.on)}.`],
  failure:
      (run, moment) => [bold("The launch ended here: "), run.trace.events[moment.event][1] || ""]
};
const streamOf = (run, number) => `stream ${number} of GPU ${run.trace.streams[number]}`;

// A moment as a sentence, which is also what a screen reader says.
function describe(run, moment, request) {
  const {kind} = moment;
  if (OF_HOST[kind]) return OF_HOST[kind](run, moment);
  const lanes = lanesOf(moment.mask), who = whoOf(lanes), one = lanes.length === 1;
  const waiting = moment.live === undefined ? 0 : lanesOf(moment.live).length - lanes.length;
  const rest =
      waiting ? ` ${plural(waiting, "lane")} of the warp ${waiting === 1 ? "waits" : "wait"}.` : "";
  const where = moment.place >= 0 ? `Line ${run.source(moment.place).line}: ` : "";
  const what = ACCESSES.has(kind) ?
      describeAccess(run, moment, request, who, one) :
      kind === "at" ?
      [bold(`${who} ${one ? "goes" : "go"} on here`), "."] :
      kind === "wait" ?
      [
        bold(`${who} ${one ? "waits" : "wait"} at a barrier`), " for the other warps of the block."
      ] :
      describeOperation(moment.instruction, request, who, one);
  return [where, ...what, rest];
}

// The lines of `text`, counted from 0, that `other` has not in this order: no part of the longest
// common subsequence. Comments and blanks do not count.
function differingLines(text, other) {
  const plain = source => source.split("\n").map(
      line => line.replace(/\/\/.*|^\s*namespace.*/, "").replace(/\s+/g, ""));
  const a = plain(text), b = plain(other).filter(line => line);
  const common = Array.from({length: a.length + 1}, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; --i)
    for (let j = b.length - 1; j >= 0; --j)
      common[i][j] =
          a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const found = new Set();
  for (let i = 0, j = 0; i < a.length;) {
    if (a[i] === b[j])
      ++i, ++j;
    else if (j < b.length && common[i][j + 1] > common[i + 1][j])
      ++j;
    else if (a[i])
      found.add(i++);
    else
      ++i;
  }
  return found;
}

// Scrolls `box`, and nothing around it, until `part` is seen.
function scrollInto(box, part) {
  const top = part.getBoundingClientRect().top - box.getBoundingClientRect().top,
        room = box.clientHeight - part.offsetHeight;
  if (top < 0 || top > room) box.scrollTop += top - room / 2;
}

const WORDS =
    /\b(template|typename|__global__|__device__|__forceinline__|__shared__|__restrict__|const|constexpr|int|unsigned|float|double|bool|void|if|else|for|while|return|break|continue|static|inline|struct|namespace|using|auto|true|false|extern|sizeof)\b/g;
function highlight(line) {
  const escape = text => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const at = line.indexOf("//");
  const code = at < 0 ? line : line.slice(0, at), comment = at < 0 ? "" : line.slice(at);
  return escape(code).replace(WORDS, '<span class="word">$1</span>') +
      (comment ? `<span class="comment">${escape(comment)}</span>` : "");
}

// --- Canvases
// ---------------------------------------------------------------------------------------

function prepare(canvas, height) {
  const width =
      canvas.parentNode.clientWidth - (canvas.parentNode.classList.contains("card") ? 20 : 0) ||
      600;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return {context, width};
}

function dot(context, x, y, radius, colour) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = colour;
  context.fill();
}

function fillBox(context, x, y, w, h, colour) {
  context.fillStyle = colour;
  context.fillRect(x, y, w, h);
}

function strokeBox(context, x, y, w, h, colour, lineWidth = 1) {
  Object.assign(context, {strokeStyle: colour, lineWidth});
  context.strokeRect(x, y, w, h);
}

function strokeLine(context, x1, y1, x2, y2, colour) {
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

function hatch(context, x, y, w, h, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let d = Math.floor((x - h) / 5) * 5; d < x + w; d += 5) {
    context.moveTo(d, y + h);
    context.lineTo(d + h, y);
  }
  context.stroke();
  context.restore();
}

// --- Moving
// -----------------------------------------------------------------------------------------

function go(tick) {
  state.tick = Math.max(0, Math.min(state.axis.length - 1, tick));
  if (!panes[state.focus].box.classList.contains("chosen")) showPane();
  panes.forEach((pane, r) => {
    if (pane.m !== momentOf(r) || state.redraw) pane.show(momentOf(r));
  });
  state.redraw = false;
  $("position").max = state.axis.length - 1;
  $("position").value = state.tick;
  $("position").setAttribute("aria-valuetext", panes[state.focus].sentence.textContent);
  $("where").textContent =
      `step ${(state.tick + 1).toLocaleString("en")} of ${state.axis.length.toLocaleString("en")}`;
  const {warp} = runs[state.focus].moments[momentOf(state.focus)];
  if (warp) $("warp").value = `${state.focus}:${warp.key}`;
  clearTimeout(state.writing);
  state.writing = setTimeout(writeUrl, 120);
}

function redraw() {
  fit();
  state.redraw = true;
  go(state.tick);
}

function writeUrl() {
  const words = new URLSearchParams(state.choices);
  words.set("kernel", runs[state.focus].name);
  words.set("event", runs[state.focus].moments[momentOf(state.focus)].event);
  if (state.tour >= 0) words.set("tour", state.tour + 1);
  history.replaceState(null, "", "#" + words);
}

function readUrl() {
  const words = new URLSearchParams(location.hash.slice(1));
  if (words.has("tour") && data.tour[words.get("tour") - 1])
    return showStop(words.get("tour") - 1, !words.has("event"));
  if (words.has("find")) {
    const r = Math.max(0, runs.findIndex(run => run.name === words.get("kernel")));
    const [m] = runs[r].kinds[words.get("find")] || [];
    if (m !== undefined) return goTo(r, m);
  }
  if (words.has("event")) goToEvent(words.get("kernel"), +words.get("event"));
}

function goTo(r, m) {
  state.focus = r;
  go(tickOf(r, m));
}
function goToEvent(kernel, event) {
  const r = Math.max(0, runs.findIndex(run => run.name === kernel));
  const moments = runs[r].momentOfEvent;
  goTo(r, moments[Math.max(0, Math.min(moments.length - 1, event))]);
}

// What a step goes to.
const GRAINS = {
  request: moment => moment.kind !== "at",
  line: () => true,
  news: moment => moment.isNew,
  phase: moment => moment.kind === "launch" || moment.kind === "barrier",
  warp: (moment, before) => moment.warp !== before.warp,
};

// A step forward or back: to the next moment at which something of the chosen grain is new.
function step(direction) {
  const grain = $("grain").value;
  let tick = state.tick;
  for (;;) {
    tick += direction;
    if (tick <= 0 || tick >= state.axis.length - 1) break;
    const moved = runs.some((run, r) => {
      const m = state.axis[tick][r], before = state.axis[tick - 1][r];
      return m !== before && GRAINS[grain](run.moments[m], run.moments[before]);
    });
    if (moved) break;
  }
  go(tick);
}

function jump(direction) {
  const r = state.focus, m = momentOf(r), found = runs[r].kinds[$("kind").value];
  const next = direction > 0 ? found.find(other => other > m) :
                               [...found].reverse().find(other => other < m);
  if (next !== undefined)
    goTo(r, next);
  else if (found.length)
    goTo(r, direction > 0 ? found[0] : found[found.length - 1]);
}

// What is left of the run takes half a minute at most.
function play(on) {
  clearInterval(state.playing);
  state.playing = 0;
  $("play").textContent = on ? "❚❚ pause" : "▶ play";
  if (!on) return;
  if (state.tick >= state.axis.length - 1) go(0);
  const left = state.axis.length - state.tick, skip = Math.floor(left / 300);
  state.playing = setInterval(() => {
    state.tick = Math.min(state.tick + skip, state.axis.length - 1);
    step(1);
    if (state.tick >= state.axis.length - 1) play(false);
  }, Math.max(100, Math.min(400, 30000 / left)));
}

// --- The tour
// ---------------------------------------------------------------------------------------

function showStop(number, move = true) {
  const stop = data.tour[number];
  if (!stop) return;
  state.tour = number;
  const button = (text, to) => make(
      "button",
      {type: "button", textContent: text, disabled: !data.tour[to], onclick: () => showStop(to)});
  const close = make(
      "button", {type: "button", textContent: "✕", title: "close the tour", onclick: closeTour});
  $("tour").hidden = false;
  $("tour").replaceChildren(
      make("div", {}, make("h2", {textContent: stop.title}), make("p", {textContent: stop.text})),
      make(
          "div", {className: "steps"}, `${number + 1} of ${data.tour.length}`,
          button("‹ back", number - 1), button("next ›", number + 1), close));
  redraw();
  const words = new URLSearchParams(location.hash.slice(1));
  if (move)
    goToEvent(stop.kernel, stop.event);
  else
    goToEvent(words.get("kernel"), +words.get("event"));
}

function closeTour() {
  state.tour = -1;
  $("tour").hidden = true;
  redraw();
  writeUrl();
}

// --- The page
// ---------------------------------------------------------------------------------------

// Shows `next`: {traces, tour, find, like}, at the first event of the kind `find`, where a product
// is wrong, at the first request to the array `like`, or at the first step.
function load(next) {
  play(false);
  data = next;
  runs = data.traces.map(trace => new Run(trace));
  if (!data.tour.length) data.tour = tourOf(runs);
  Object.assign(state, {tick: 0, focus: 0, tour: -1, redraw: true});
  panes = runs.map((run, number) => new Pane(run, number));
  $("panes").className = runs.length > 1 ? "two" : "one";
  $("panes").replaceChildren(...panes.map(pane => pane.box));
  $("kernels").replaceChildren(...runs.length < 2 ? [] : runs.map((run, r) => make("button", {
                                                                    type: "button",
                                                                    textContent: run.name,
                                                                    onclick: () => {
                                                                      state.focus = r;
                                                                      go(state.tick);
                                                                    }
                                                                  })));
  const {matrix, precision, schedule} = data.traces[0];
  $("about").textContent = !matrix.rows ? matrix.name :
                                          `${matrix.name}: ${matrix.rows} × ${matrix.columns}, ${
                                              plural(matrix.nonzeros, "nonzero")}, ${precision}` +
          (schedule === "forward" ? "" : `, ${schedule} schedule`);
  $("kind").replaceChildren();
  for (const [kind, text] of Object.entries(KINDS)) {
    const count = runs.reduce((sum, run) => sum + run.kinds[kind].length, 0);
    if (count) $("kind").append(make("option", {value: kind, textContent: `${text} (${count})`}));
  }
  $("warp").replaceChildren();
  runs.forEach((run, r) => {
    const group = make("optgroup", {label: run.name});
    for (const warp of run.warps.values()) {
      const gpu = run.parts.length ? `GPU ${run.launches[warp.launch].device}, ` : "";
      const launch = gpu + (run.launches.length > 1 ? `launch ${warp.launch + 1}, ` : "");
      group.append(make("option", {
        value: `${r}:${warp.key}`,
        textContent: `${launch}block ${warp.block}, warp ${warp.warp}`
      }));
    }
    $("warp").append(group);
  });
  // Two versions of one kernel make the same requests, up to where they differ.
  state.axis = axisOf(
      runs.some(run => runs.some(other => other.name === "my_" + run.name)) ? "instruction" :
                                                                              "bytes");
  showPane();
  const find = data.find || "wrong", r = runWith(find);
  $("worst").hidden = runWith("worst") < 0;
  if (!document.body.dataset.ready && location.hash) {
    go(0);
    readUrl();
  } else if (r >= 0) {
    $("kind").value = find;
    goTo(r, runs[r].kinds[find][0]);
  } else if (data.like)
    goTo(0, Math.max(0, runs[0].moments.findIndex(moment => moment.array?.name === data.like)));
  else
    go(0);
  redraw();  // now that the sentence has its height
}

// The first run that has a moment of this kind, the one in focus before others; -1: none.
function runWith(kind) {
  const has = run => run?.kinds[kind]?.length > 0;
  return has(runs[state.focus]) ? state.focus : runs.findIndex(has);
}

function start() {
  $("keys").innerHTML =
      "<kbd>space</kbd> play, pause &nbsp; <kbd>←</kbd> <kbd>→</kbd> step &nbsp; <kbd>↑</kbd> <kbd>↓</kbd> warp &nbsp; " +
      "<kbd>n</kbd> <kbd>N</kbd> next, previous event of the chosen kind &nbsp; <kbd>t</kbd> tour &nbsp; <kbd>p</kbd> predict, <kbd>1</kbd> to <kbd>4</kbd> answer &nbsp; <kbd>Home</kbd> <kbd>End</kbd>. " +
      "The order is that of the CPU backend, warp after warp; on a GPU warps overlap.";
  $("back").onclick = () => step(-1);
  $("forward").onclick = () => step(1);
  $("play").onclick = () => play(!state.playing);
  $("previous").onclick = () => jump(-1);
  $("next").onclick = () => jump(1);
  $("position").oninput = () => go(+$("position").value);
  $("warp").onchange = () => {
    const [r, key] = $("warp").value.split(":");
    goTo(+r, runs[r].warps.get(key).moments[0]);
  };
  $("guide").onclick = () => showStop(Math.max(0, state.tour));
  $("quiz").onclick = () => quiz.toggle();
  $("worst").onclick = () => {
    const r = runWith("worst");
    goTo(r, runs[r].kinds.worst[0]);
  };
  $("more").onclick = () =>
      $("more").setAttribute("aria-expanded", $("bar").classList.toggle("all"));
  $("panels").append(...PANELS.map(
      name => make("button", {type: "button", textContent: name, onclick: () => showPanel(name)})));
  showPanel(PANELS[0]);
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", readUrl);
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  state.opened = new URLSearchParams(location.hash.slice(1));
  state.choices = Object.fromEntries(
      [...state.opened].filter(([name]) => !["kernel", "event", "find", "tour"].includes(name)));
  load(JSON.parse($("data").textContent));
  document.body.dataset.ready = "yes";
}

// On a narrow screen one kernel and one kind of panel are shown (page.css); now: lanes and memory.
const PANELS = ["now", "source", "warps", "matrix", "totals"];
function showPanel(name) {
  document.body.dataset.panel = name;
  for (const button of $("panels").children)
    button.setAttribute("aria-pressed", button.textContent === name);
  if (panes) redraw();
}

function showPane() {
  panes.forEach(({box}, r) => box.classList.toggle("chosen", r === state.focus));
  [...$("kernels").children].forEach(
      (button, r) => button.setAttribute("aria-pressed", r === state.focus));
  state.redraw = true;
}

// The height from the lanes to the end of the first screen: page.css lets source and memory scroll
// in it.
function fit() {
  $("panes").classList.toggle("stacked", runs.length > 1 || innerWidth <= 900);
  const below = getComputedStyle($("bar")).position === "fixed" ? $("bar").offsetHeight : 0;
  for (const {box, lanesCard} of panes) {
    const {top, height} = lanesCard.getBoundingClientRect();
    box.style.setProperty("--room", `${innerHeight - top - scrollY - below}px`);
    box.style.setProperty("--lanes", `${height}px`);
  }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.tagName === "SELECT" || event.target.closest("#live")) return;
  const other = direction => {
    const options = [...$("warp").options],
          at = options.findIndex(option => option.value === $("warp").value) + direction;
    if (options[at]) {
      $("warp").value = options[at].value;
      $("warp").onchange();
    }
  };
  const actions = {
    " ": () => play(!state.playing),
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    ArrowUp: () => other(-1),
    ArrowDown: () => other(1),
    n: () => jump(1),
    N: () => jump(-1),
    Home: () => go(0),
    End: () => go(state.axis.length - 1),
    t: () => $("guide").click(),
    p: () => $("quiz").click(),
  };
  if (quiz.key(event.key)) return;
  if (!actions[event.key] || (event.key === " " && event.target.tagName === "BUTTON")) return;
  event.preventDefault();
  actions[event.key]();
}

start();
