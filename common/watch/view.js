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

const button = (textContent, onclick, more) =>
    make("button", {type: "button", textContent, onclick, ...more});

// What a colour or pattern means.
const colourKey = (background, text) =>
    make("span", {}, make("i", {style: `background: ${background}`}), text);

// --- The axis

// A tick of the axis is a moment of each run. One run: its moments. Two: in step by instruction, or
// each as far as the other in bytes moved, one moment at a time.
function axisOf(by) {
  if (runs.length === 1) return Array.from({length: runs[0].count}, (_, m) => [m]);
  if (by === "instruction") {
    const count = Math.max(...runs.map(run => run.count));
    return Array.from({length: count}, (_, tick) => runs.map(run => Math.min(tick, run.count - 1)));
  }
  const next = runs.flatMap(
      ({count, sums}, r) => Array.from({length: count - 1}, (_, m) => [sums.sectors[m + 2], r]));
  const at = runs.map(() => 0);
  return [
    [...at], ...next.sort(([a], [b]) => a - b).map(([, r]) => {
      ++at[r];
      return [...at];
    })
  ];
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

class Pane {
  constructor(run, number) {
    Object.assign(this, {run, number, file: -1});
    const {name, choice, idea} = run.trace.kernel, canvas = key => this[key] = make("canvas");
    // A card, which a phone shows on one of its PANELS.
    const panel = (key, on, heading, ...content) => {
      this[key] = card(heading, ...content);
      this[key].dataset.panel = on;
    };
    const legend = (...keys) => make("div", {className: "legend"}, ...keys);
    const column = (...cards) => make("div", {className: "column"}, ...cards);
    this.sentence = make("p", {className: "sentence", ariaLive: "polite"});
    this.line = make("code", {className: "line"});
    const says = make("small", {textContent: choice ? `${choice}; ${idea}` : idea});
    const top = make(
        "div", {className: "card top"}, make("h2", {}, name + " ", says), this.sentence, this.line,
        ...this.complaints().map(textContent => make("p", {className: "failed", textContent})));
    this.totals = make("table", {className: "totals"});
    this.bars = make("div", {className: "bars"});
    panel("totalsCard", "totals", "what the run has asked for", this.totals, this.bars);
    this.totalsCard.classList.add("whole");
    this.code = make("div", {className: "card code", tabIndex: 0, ariaLabel: "source"});
    this.code.dataset.panel = "source";
    this.cells = COLOURS.map(
        colour => make(
            "div", {className: "lane", style: `--hue: ${colour}; border-top-color: ${colour}`}));
    panel("lanesCard", "now", "the warp", make("div", {className: "lanes"}, ...this.cells));
    panel("exchangeCard", "now", "lanes exchange values", canvas("exchange"));
    this.arrays = run.arrays.map(array => this.makeArray(array));
    this.memory = make("div", {className: "arrays"}, ...this.arrays.map(({box}) => box));
    const lanes = COLOURS.filter((_, i) => i % 6 === 0).join(","),
          hatched = "repeating-linear-gradient(135deg, var(--dragged) 0 1px, transparent 1px 4px)";
    const keys = [
      [`linear-gradient(90deg, ${lanes})`, "used by a lane (colour: which)"],
      [hatched, "dragged along in its sector"], ["var(--fetched)", "fetched before"],
      ["var(--written)", "written"], ...run.parts.length ? [["var(--ghost)", "ghost entry"]] : []
    ];
    panel(
        "memoryCard", "now", "memory, in sectors of 32 bytes and lines of 128", this.memory,
        legend(...keys.map(key => colourKey(...key))));
    this.memoryCard.classList.add("memory");
    panel("matrixCard", "matrix", "matrix", canvas("picture"));
    panel(
        "devicesCard", "now", "x on each GPU: own entries, then ghost entries", canvas("devices"));
    this.devicesCard.hidden = !run.parts.length;
    const left = column(this.lanesCard, this.code, this.exchangeCard);
    const right = column(this.memoryCard, this.devicesCard, this.matrixCard);
    this.box =
        make("section", {className: "pane", ariaLabel: name}, top, left, right, this.totalsCard);
    this.box.addEventListener("pointerdown", () => {
      state.focus = number;
    });
    this.makeTotals();
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
    const row = words => make("tr", {}, ...words.map(textContent => make("td", {textContent})));
    this.totals.append(row(["", "so far", "at the end", ""]));
    this.soFar = Object.entries(this.run.totals(this.run.count - 1)).map(([name, end]) => {
      const made = row([name, "", end, COLUMNS[name] || COLUMNS[name.split(" ")[0]]]);
      made.dataset.name = name;
      this.totals.append(made);
      return made.cells[1];
    });
  }

  makeArray(array) {
    const canvas = make("canvas"), says = make("span", {className: "says"});
    const type = `${array.float ? "f" : "i"}${8 * array.element}`,
          count = Math.floor(array.bytes / array.element).toLocaleString("en"),
          several = this.run.arrays.some(other => other.device !== 0 && other.space === "global");
    const kind = array.space === "shared" ? "shared" :
        several                           ? `${type}, GPU ${array.device}` :
                                            type;
    const name = make(
        "div", {className: "name"}, make("b", {}, array.name),
        make("span", {}, `${count} × ${kind}`), says);
    const box = make("div", {className: "array"}, name, canvas);
    return {array, canvas, says, box, shown: 0};
  }

  // The moment m of the run, on all of the pane.
  show(m) {
    const {run} = this, moment = run.moments[m];
    const has = ACCESSES.has(moment.kind) || moment.kind === "warp operation";
    Object.assign(this, {m, moment, request: has ? run.request(moment) : null});
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
    this.showLanes();
    this.showSource();
    this.showExchange();
    for (const array of this.arrays) {
      array.box.hidden = !this.isShown(array.array);
      if (!array.box.hidden) this.drawArray(array);
    }
    const touched = this.arrays.find(({box}) => !box.hidden && !box.classList.contains("idle"));
    if (touched) scrollInto(this.memory, touched.box);
    if (run.parts.length) this.drawDevices();
    this.drawMatrix();
  }

  // What was asked of the L1 caches, what these asked of the L2, and what that asked of DRAM,
  // beside what is needed.
  showBars(end) {
    const {sums, count, parts, trace: {compulsory_bytes: needed, caches_of: gpu}} = this.run;
    if (parts.length || !needed) return;
    const most = Math.max(needed, sums.sectors[count] * SECTOR);
    const asked = [
      ["asked for", "sectors", "what the requests of all warps touch: the L1 caches are asked"],
      [
        "from L2", "l2Sectors",
        `what the L1 of the block's multiprocessor does not have (simt's ` +
            `model of the caches of an ${gpu})`
      ],
      [
        "from DRAM", "dramSectors",
        "what the L2 does not have, either, at the first product " +
            "(stored sectors are written, not read)"
      ]
    ].map(([name, sum, title]) => [name, sums[sum][end] * SECTOR, title]);
    const bars = [...asked, ["needed", needed, "the matrix, x and y, each once"]];
    this.bars.replaceChildren(...bars.map(
        ([name, bytes, title]) => make(
            "div", {}, make("span", {}, name),
            make("i", {}, make("u", {style: `width: ${100 * bytes / most}%`})),
            make("b", {}, `${number(bytes / 1e3)} kB`), make("small", {}, title))));
  }

  showLanes() {
    const {run, moment, m, request} = this, {warp} = moment;
    const launch = run.launches[moment.launch];
    const size = parseFloat(getComputedStyle(this.cells[0]).fontSize),
          most = Math.min(3, Math.floor((this.cells[0].clientHeight - 15) / (1.25 * size)));
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
      const word = name === "active" ? "" :
          name === "absent"          ? "none" :
          name === "waiting"         ? (lane.did === "wait" ? "barrier" : "waits") :
                                       (run.failed ? "stopped" : "returned");
      cell.replaceChildren(
          make("span", {className: "state"}, word), make("b", {}, id),
          ...chosen.map(
              ([variable, value]) =>
                  make("span", {className: "value"}, make("i", {}, variable), value)));
      cell.title = `lane ${id}: ${name}` +
          (lines.length ? `; ${lines.map(line => line.join("")).join(", ")}` : "");
    });
  }

  // As many variables as fit: row, index and sum before others.
  choose(lines, most) {
    const rank = ([name]) => /^(row|k|sum)$/.test(name) ? 0 : /^row_/.test(name) ? 2 : 1;
    const first = [...lines].sort((a, b) => rank(a) - rank(b)).slice(0, most);
    return lines.filter(line => first.includes(line));
  }

  // --- Source

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
    for (const row of this.marked) {
      row.classList.remove("now");
      row.children[1].textContent = "";
      row.children[2].innerHTML = row.dataset.html;
    }
    counts.set(line, counts.get(line) || 0);
    this.marked = [...counts.keys()].filter(at => this.rows.has(at)).map(at => this.rows.get(at));
    for (const [at, count] of counts)
      if (this.rows.has(at)) this.rows.get(at).children[1].textContent = `◂${count}`;
    const row = this.rows.get(line);
    if (!row) return;
    row.classList.add("now");
    row.children[1].textContent = `▸${lanesOf(moment.mask).length}`;
    if (moment.array)
      row.children[2].innerHTML = row.dataset.html.replace(
          new RegExp(`(?<![\\w">])(${moment.array.name}(\\[[^\\]<]*\\])?)`), "<mark>$1</mark>");
    this.line.innerHTML = row.children[2].innerHTML.trim();
    scrollInto(this.code, row);
  }

  loadSource(file) {
    this.file = file;
    const source = this.run.trace.sources[file], pre = make("pre");
    this.rows = new Map();
    source.text.split("\n").forEach((line, i) => {
      if (/^\s*\/\/ exercise: /.test(line)) return;
      const row = make("div", {}, make("i", {}, i + 1), make("em"), make("code"));
      row.dataset.html = highlight(line) || " ";
      row.children[2].innerHTML = row.dataset.html;
      this.rows.set(i + 1, row);
      pre.append(row);
    });
    this.code.replaceChildren(make("h3", {}, source.file), pre);
    this.marked = [];
  }

  // --- Shuffles and votes

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
    const height = 46, pen = prepare(this.exchange, rounds.length * height + 14), {width} = pen;
    const x = lane => (lane + .5) * width / LANES;
    this.exchangeCard.says.textContent = moment.instruction.operation;
    rounds.forEach((round, i) => {
      const {lanes, operands, results, sources} = run.request(round);
      const top = 8 + i * height, bottom = top + height - 14;
      const current = i === rounds.length - 1;
      pen.globalAlpha = current ? 1 : .55;
      pen.lineWidth = current ? 1.6 : 1;
      lanes.forEach((lane, j) => {
        if (sources) pen.link(x(sources[j]), top, x(lane), bottom, COLOURS[sources[j]]);
        const on = sources || (operands && operands[j] !== 0);
        pen.dot(x(lane), top, on ? 4 : 2, COLOURS[lane]);
        if (results) pen.dot(x(lane), bottom, 3, COLOURS[sources ? sources[j] : lane]);
      });
      pen.fillStyle = css("--soft");
      pen.font = "10px system-ui, sans-serif";
      if (!sources)
        pen.fillText(
            `${round.instruction.operation}${results ? ` → ${show(results[0])}` : ""}`, 4,
            top + 20);
    });
    pen.globalAlpha = 1;
  }

  // --- Several GPUs

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
    const step = 40, pen = prepare(this.devices, rows.length * step + 4);
    const left = 52, count = Math.max(...run.parts.map(part => part.columns.length)),
          w = (pen.width - left) / count;
    const middle = element => left + (element + .5) * w;
    const rowOf = array => rows.findIndex(row => row.array === array);
    const running =
        moment.launch >= 0 && moment.kind !== "copy" ? run.launches[moment.launch].device : -1;
    this.devicesCard.says.textContent = running >= 0 ? `GPU ${running} executes` : "";
    pen.font = "11px system-ui, sans-serif";
    const y = row => 6 + row * step;
    rows.forEach(({device, array}, r) => {
      const tall = 15, own = array.part.rows.length,
            ink = css(device === running ? "--ink" : "--soft");
      const odd = rows.slice(0, r).some(row => row.device === device);
      pen.write(`GPU ${device}`, 0, y(r) + 8, ink);
      pen.write(`x, ${odd ? "odd" : "even"}`, 0, y(r) + 20, ink);
      const ghosts = [];
      array.part.columns.forEach((column, element) => {
        if (column < 0) return;
        if (element >= own) ghosts.push(element);
        const written = array.writes.get(element)?.[0][0] <= m;
        const look = written ? "--written" : element >= own ? "--ghost" : "--never";
        pen.box(left + element * w, y(r), w, tall, css(look));
      });
      pen.frame(left + .5, y(r) + .5, own * w, tall, css("--edge"));
      if (!ghosts.length) return;
      const wide = (ghosts.at(-1) - ghosts[0] + 1) * w;
      pen.frame(left + ghosts[0] * w + .5, y(r) + .5, wide, tall, css("--soft"));
    });
    const arrow = (fromArray, fromElement, toArray, toElement, colour) => {
      const from = rowOf(fromArray), to = rowOf(toArray);
      if (to < 0) return;
      pen.lineWidth = 1.2;
      const begin = from < 0 ? [middle(toElement), y(to) - 7] : [middle(fromElement), y(from) + 7];
      pen.link(...begin, middle(toElement), y(to) + 7, colour);
      pen.dot(middle(toElement), y(to) + 7, 2.5, colour);
    };
    if (moment.kind === "copy" && moment.to) {
      for (let at = 0; at < moment.bytes; at += moment.to.element) {
        arrow(
            moment.from, (moment.fromOffset + at) / moment.to.element, moment.to,
            (moment.toOffset + at) / moment.to.element, css("--accent"));
      }
    }
    // What a lane stores into another GPU's x is the entry of the same column, on its own.
    const {array, lanes, addresses} = request || {};
    const each = draw =>
        lanes.forEach((lane, i) => draw(Math.floor(addresses[i] / array.element), COLOURS[lane]));
    if (array?.part && run.overLink(moment)) {
      const of = device => rows.filter(row => row.device === device).map(row => row.array);
      const own = of(running)[of(array.device).indexOf(array)];
      each((element, colour) => {
        const place = own ? own.part.columns.indexOf(array.part.columns[element]) : -1;
        arrow(place >= 0 ? own : null, place, array, element, colour);
      });
    } else if (array && rowOf(array) >= 0)
      each(
          (element, colour) =>
              pen.box(left + element * w, y(rowOf(array)), Math.max(1.5, w), 15, colour));
  }

  // --- Arrays

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
      const begin = made.array === moment.to ? moment.toOffset : moment.fromOffset;
      if (made.array !== moment.to && made.array !== moment.from) return used;
      for (let at = begin; at < begin + moment.bytes; at += made.array.element)
        used.set(at / made.array.element, [0]);
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

  // An array: in sectors; where it is shared, in banks.
  drawArray(made) {
    const {array, says, box} = made, shared = array.space === "shared";
    const used = this.usedBy(made), counts = used.size ? this.moment.counts : null;
    box.className = used.size ? "array" : "array idle";
    says.textContent = !counts ?
        "" :
        shared ?
        `${plural(counts.passes, "pass")} over the banks, ${counts.idealPasses} without conflicts` :
        `${plural(counts.sectors, "sector")} touched, ${counts.ideal} needed; ${
            Math.round(100 * counts.used / counts.sectors / SECTOR)}% used`;
    shared ? this.drawBanks(made, used, counts) : this.drawStrip(made, used);
  }

  drawStrip(made, used) {
    const {array, canvas} = made, {m} = this;
    const own = array.part ? array.part.rows.length : Infinity;  // from here on: ghost entries
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
    const pen = prepare(canvas, shownRows.length * step + 6), {width} = pen;
    // All of the array, in a line.
    pen.box(0, 0, width, 3, css("--line"));
    const scale = width / sectors;
    pen.fillStyle = css("--accent");
    for (const sector of touched) pen.fillRect(sector * scale, 0, Math.max(1.5, scale), 3);
    pen.globalAlpha = .35;
    for (let s = 0; s < sectors; ++s)
      if (array.fetched[s] < m) pen.fillRect(s * scale, 0, Math.max(.6, scale), 3);
    pen.globalAlpha = 1;
    const names = ["never", "fetched", "written", "ghost", "edge", "dragged", "ink"];
    const colours = Object.fromEntries(names.map(name => [name, css(`--${name}`)]));
    shownRows.forEach((row, r) => {
      const y = 6 + r * step;
      for (let sector = row * perRow * 4; sector < Math.min(sectors, (row + 1) * perRow * 4);
           ++sector) {
        const inRow = sector - row * perRow * 4;
        const x = Math.floor(inRow / 4) * line + inRow % 4 * wide;
        const elements =
            Math.min(perSector, Math.ceil((array.bytes - sector * SECTOR) / array.element));
        const w = wide / perSector;
        pen.box(
            x, y, elements * w, tall, array.fetched[sector] < m ? colours.fetched : colours.never);
        for (let e = 0; e < elements; ++e) {
          const element = sector * perSector + e, place = [x + e * w, y, w, tall];
          if (element >= own && array.part.columns[element] >= 0) pen.box(...place, colours.ghost);
          if (array.writes.get(element)?.[0][0] <= m) pen.box(...place, colours.written);
          const lanes = used.get(element);
          if (lanes)
            pen.box(x + e * w + .5, y + .5, w - 1, tall - 1, COLOURS[lanes[0]]);
          else if (touched.has(sector))
            pen.hatch(...place, colours.dragged);
        }
        const edge = touched.has(sector) ? colours.ink : colours.edge;
        pen.frame(x + .5, y + .5, elements * w - 1, tall - 1, edge);
      }
      if (r > 0 && shownRows[r - 1] !== row - 1) pen.box(0, y - 3, width, .8, css("--soft"));
    });
  }

  // Shared memory: a column per bank; rows of 32 words.
  drawBanks(made, used, counts) {
    const {array, canvas} = made;
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
    const step = 12, pen = prepare(canvas, shownRows.length * step + 12), {width} = pen;
    const w = width / BANKS;
    const load = new Array(BANKS).fill(0), most = Math.max(1, array.element / BANK_BYTES);
    for (const word of words.keys()) ++load[word % BANKS];
    pen.font = "9px system-ui, sans-serif";
    pen.textAlign = "center";
    load.forEach((count, bank) => {
      const text = count > most ? `${count}×` : bank % 4 ? "" : bank;
      const bad = count > 1 && counts && counts.passes > counts.idealPasses;
      pen.write(text, (bank + .5) * w, 8, css(bad ? "--bad" : "--soft"));
    });
    pen.textAlign = "left";
    shownRows.forEach((row, r) => {
      for (let bank = 0; bank < BANKS; ++bank) {
        const word = (first + row) * BANKS + bank, byte = word * BANK_BYTES - array.offset;
        if (byte < 0 || byte >= array.bytes) continue;
        const lanes = words.get(word), y = 11 + r * step;
        const written = array.writes.get(Math.floor(byte / array.element))?.[0][0] <= this.m;
        const look = lanes ? COLOURS[lanes[0]] : css(written ? "--written" : "--never");
        pen.box(bank * w + .5, y, w - 1, step - 2, look);
        pen.frame(bank * w + 1, y + .5, w - 2, step - 3, css(lanes ? "--ink" : "--edge"));
      }
    });
  }

  // --- Matrix

  drawMatrix() {
    const {run, m} = this, {rows, columns, nonzeros, row_offsets: offsets} = run.matrix;
    // A puzzle has no matrix (common/primer). Of several GPUs each has its part, as x on each GPU
    // shows.
    this.matrixCard.hidden = !rows || run.parts.length > 0;
    if (this.matrixCard.hidden) return;
    const available = this.picture.parentNode.clientWidth - 20, now = this.nonzerosNow();
    let done = 0;
    for (let k = 0; k < nonzeros; ++k) done += run.doneAt[k] <= m;
    this.matrixCard.says.textContent = `${rows} × ${columns}; ${done.toLocaleString("en")} of ${
                                           plural(nonzeros, "nonzero")} begun` +
        (now.length ? `, ${now.length} now` : "");
    const small = Math.max(rows, columns) <= 48;
    const whole = small ? Math.min(available, 330) : 150,
          height = small ? whole * Math.min(1, rows / columns) + 2 : 232;
    const pen = prepare(this.picture, Math.max(24, height));
    const cell = Math.min(14, (whole - 2) / Math.max(rows, columns));
    this.drawPart(
        pen, now, small ? (available - cell * columns) / 2 : 0, 0, cell, [0, rows, 0, columns]);
    if (small) return;
    // What is being multiplied, enlarged, and where that is.
    const part = this.partOf(now), [top, bottom, left, right] = part;
    const room = available - whole - 24,
          each = Math.min(14, room / (right - left), 230 / (bottom - top));
    this.drawPart(pen, now, whole + 24, 0, each, part);
    pen.frame(
        left * cell + .5, top * cell + .5, (right - left) * cell, (bottom - top) * cell,
        css("--ink"));
  }

  // The rows and columns to enlarge: around the nonzeros of now, else where it was.
  partOf(now) {
    const {rows, columns, column_indices: indices} = this.run.matrix;
    const around = (values, count, room) => {
      const middle = (Math.min(...values) + Math.max(...values)) >> 1;
      const low = Math.max(0, Math.min(middle - room / 2, count - room));
      return [low, Math.min(count, low + room)];
    };
    if (now.length || !this.part)
      this.part = [
        ...around(now.length ? now.map(([, k]) => this.run.rowOf[k]) : [0], rows, 40),
        ...around(now.length ? now.map(([, k]) => indices[k]) : [0], columns, 80)
      ];
    return this.part;
  }

  drawPart(pen, now, x, y, cell, [top, bottom, left, right]) {
    const {run, m} = this, {row_offsets: offsets, column_indices: indices} = run.matrix;
    pen.frame(x + .5, y + .5, cell * (right - left) + 1, cell * (bottom - top) + 1, css("--edge"));
    const size = Math.max(1, cell - (cell > 4 ? 1 : 0));
    const colours = [css("--dragged"), css("--accent")];
    for (const pass of [0, 1]) {
      pen.fillStyle = colours[pass];
      pen.globalAlpha = pass ? .6 : .4;
      for (let row = top; row < bottom; ++row) {
        for (let k = offsets[row]; k < offsets[row + 1]; ++k) {
          const column = indices[k];
          if (column < left || column >= right || (run.doneAt[k] <= m) !== (pass === 1)) continue;
          pen.fillRect(x + 1 + (column - left) * cell, y + 1 + (row - top) * cell, size, size);
        }
      }
    }
    pen.globalAlpha = 1;
    const big = Math.max(2, cell);
    for (const [lane, k] of now) {
      const row = run.rowOf[k], column = indices[k];
      if (row < top || row >= bottom || column < left || column >= right) continue;
      pen.box(
          x + 1 + (column - left + .5) * cell - big / 2, y + 1 + (row - top + .5) * cell - big / 2,
          big, big, COLOURS[lane]);
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

// What stands between ** is bold.
const rich = text => text.split("**").map((part, i) => i % 2 ? make("b", {}, part) : part);

// Which lanes, as the subject of a sentence.
function whoOf(lanes) {
  const {length, 0: first, [length - 1]: last} = lanes;
  if (length === 1) return `lane ${first}`;
  if (length === LANES) return "all 32 lanes";
  if (last - first === length - 1) return `lanes ${first} to ${last}`;
  return length <= 6 ? `lanes ${lanes.join(", ")}` : plural(length, "lane");
}

// Who left the values that this request finds: a carry, a product, a flag, a row counter.
function describeGivers(run, {givers, block}, array) {
  if (!givers) return "";
  const found = [...givers].slice(0, 3).map(([giver, [first, ...more]]) => {
    const where = (run.parts.length ? `GPU ${run.launches[giver.launch].device}, ` : "") +
        (giver.block === block ? "" : `block ${giver.block}, `);
    const others = more.length ? ` and ${more.length} more` : "";
    return `${array.name}[${first}]${others} from ${where}warp ${giver.warp}`;
  });
  const rest = givers.size > 3 ? ` and from ${givers.size - 3} more` : "";
  return ` It finds what other warps have left: ${found.join(", ")}${rest}.`;
}

// What a moment leaves wrong in y.
function describeWrong([wrong, ...others]) {
  if (!wrong) return [];
  const {lane, row, got, expected} = wrong;
  const more = others.length ? `; ${others.length} more are wrong` : "";
  const textContent = ` Lane ${lane} leaves y[${row}] = ${show(got ?? "nan")}, which should be ${
      show(expected)}${more}.`;
  return [make("b", {className: "wrong", textContent})];
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
  const size = (counts.sectors * SECTOR).toLocaleString("en"),
        touched = `${plural(counts.sectors, "sector")} in ${plural(counts.lines, "line")}`;
  return `The request touches **${touched}** and uses ${counts.used.toLocaleString("en")} of ${
      size} bytes (${share}%). ${fewer}${cached}${same}`;
}

function describeAccess(run, moment, request, who, one) {
  const {array} = request, {counts, kind, instruction} = moment;
  const verb = {load: "load", store: "store", atomic: "update"}[kind] + (one ? "s" : "");
  const link = run.overLink(moment) ? ` on GPU ${array.device}, over the link` : "";
  const served = array.space !== "shared" ?
      describeSectors(run, moment, request) :
      counts.passes > counts.idealPasses ?
      `**Bank conflict: ${counts.passes} passes** instead of ${counts.idealPasses}.` :
      `The banks serve it in ${plural(counts.passes, "pass")}.`;
  return `**${who} ${verb} ${array.name}${link}**, ${instruction.size} bytes each${
      kind === "atomic" ? ", atomically" : ""}. ${served}${describeGivers(run, moment, array)}`;
}

function describeOperation({operation}, {sources, results, lanes}, who, one) {
  const result =
      results ? `; the result is ${show(results[0])}.` : " and see what the others wrote.";
  if (!sources) return `**${operation}: ${who} ${one ? "meets" : "meet"}**${result}`;
  const distances = new Set(sources.map((source, i) => source - lanes[i]).filter(d => d));
  const [distance] = distances;
  const how = distances.size === 1 ?
      `each from the lane ${Math.abs(distance)} ${distance > 0 ? "above" : "below"}` :
      distances.size ? "each from the lane it names" :
                       "each its own";
  return `**${operation}: ${who} ${one ? "takes" : "take"} a value**, ${
      how}. No memory is involved.`;
}

// What the host does, or the launch as a whole.
const OF_HOST = {
  barrier: () => "**All threads of the block have reached the barrier** and go on.",
  launch(run, moment) {
    const {kernel, grid, block, device, stream} = run.launches[moment.launch];
    const [blocks, threads] = [grid, block].map(sizes => sizes.reduce((a, b) => a * b));
    const where = run.launches.some(l => l.device) ? `, on GPU ${device}, stream ${stream}` : "";
    return `**Launch ${moment.launch + 1}: ${kernel}**, ${plural(blocks, "block")} of ${
        plural(threads, "thread")}${where}.`;
  },
  copy(run, {from, to, toOffset, bytes}) {
    const name = array => array ? `${array.name} on GPU ${array.device}` : "the host";
    const ghosts = to?.part && toOffset >= to.part.rows.length * to.element;
    return `**A copy of ${plural(bytes, "byte")}** goes from ${name(from)} to ${
        ghosts ? "the ghost entries of " : ""}${name(to)}.`;
  },
  record: (run, {stream}) => `**An event is recorded on ${
      streamOf(run, stream)}**: it happens when all work on that stream so far is done.`,
  "stream wait": (run, {stream, on}) =>
      `**What follows on ${streamOf(run, stream)} waits for an event** of ${streamOf(run, on)}.`,
  failure: (run, {event}) => `**The launch ended here: **${run.trace.events[event][1] || ""}`
};
const streamOf = (run, number) => `stream ${number} of GPU ${run.trace.streams[number]}`;

// A moment as a sentence, which is also what a screen reader says.
function describe(run, moment, request) {
  const {kind} = moment;
  if (OF_HOST[kind]) return rich(OF_HOST[kind](run, moment));
  const lanes = lanesOf(moment.mask), who = whoOf(lanes), one = lanes.length === 1;
  const waiting = moment.live === undefined ? 0 : lanesOf(moment.live).length - lanes.length;
  const rest =
      waiting ? ` ${plural(waiting, "lane")} of the warp ${waiting === 1 ? "waits" : "wait"}.` : "";
  const where = moment.place >= 0 ? `Line ${run.source(moment.place).line}: ` : "";
  const what = ACCESSES.has(kind) ?
      describeAccess(run, moment, request, who, one) :
      kind === "at" ?
      `**${who} ${one ? "goes" : "go"} on here**.` :
      kind === "wait" ?
      `**${who} ${one ? "waits" : "wait"} at a barrier** for the other warps of the block.` :
      describeOperation(moment.instruction, request, who, one);
  return [...rich(where + what), ...describeWrong(moment.wrong || []), rest];
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

// What else the context of a canvas can do.
const PEN = {
  dot(x, y, radius, colour) {
    this.beginPath();
    this.arc(x, y, radius, 0, 2 * Math.PI);
    this.fillStyle = colour;
    this.fill();
  },
  box(x, y, w, h, colour) {
    this.fillStyle = colour;
    this.fillRect(x, y, w, h);
  },
  frame(x, y, w, h, colour, lineWidth = 1) {
    Object.assign(this, {strokeStyle: colour, lineWidth});
    this.strokeRect(x, y, w, h);
  },
  link(x1, y1, x2, y2, colour) {
    this.strokeStyle = colour;
    this.beginPath();
    this.moveTo(x1, y1);
    this.lineTo(x2, y2);
    this.stroke();
  },
  write(text, x, y, colour) {
    this.fillStyle = colour;
    this.fillText(text, x, y);
  },
  hatch(x, y, w, h, colour) {
    this.save();
    this.beginPath();
    this.rect(x, y, w, h);
    this.clip();
    this.lineWidth = 1;
    for (let d = Math.floor((x - h) / 5) * 5; d < x + w; d += 5)
      this.link(d, y + h, d + h, y, colour);
    this.restore();
  }
};

// The context of a canvas of this height, and its width, in pixels of the page.
function prepare(canvas, height) {
  const box = canvas.parentNode, ratio = window.devicePixelRatio || 1;
  const width = box.clientWidth - (box.classList.contains("card") ? 20 : 0) || 600;
  Object.assign(canvas, {width: Math.round(width * ratio), height: Math.round(height * ratio)});
  canvas.style.height = `${height}px`;
  const pen = Object.assign(canvas.getContext("2d"), PEN, {width});
  pen.scale(ratio, ratio);
  return pen;
}

// --- Moving

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
  const next = direction > 0 ? found.find(other => other > m) ?? found[0] :
                               found.findLast(other => other < m) ?? found.at(-1);
  if (next !== undefined) goTo(r, next);
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

function showStop(number, move = true) {
  const stop = data.tour[number];
  if (!stop) return;
  state.tour = number;
  const turn = (text, to) => button(text, () => showStop(to), {disabled: !data.tour[to]});
  const steps = [
    `${number + 1} of ${data.tour.length}`, turn("‹ back", number - 1), turn("next ›", number + 1),
    button("✕", closeTour, {title: "close the tour"})
  ];
  $("tour").hidden = false;
  $("tour").replaceChildren(
      make("div", {}, make("h2", {}, stop.title), make("p", {}, stop.text)),
      make("div", {className: "steps"}, ...steps));
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
  const choose = r => {
    state.focus = r;
    go(state.tick);
  };
  const choices = runs.map(({name}, r) => button(name, () => choose(r)));
  $("kernels").replaceChildren(...runs.length > 1 ? choices : []);
  const {matrix, precision, schedule} = data.traces[0];
  const {name, rows, columns, nonzeros} = matrix;
  const order = schedule === "forward" ? "" : `, ${schedule} schedule`;
  const size = `${rows} × ${columns}, ${plural(nonzeros, "nonzero")}`;
  $("about").textContent = rows ? `${name}: ${size}, ${precision}${order}` : name;
  $("kind").replaceChildren();
  for (const [kind, text] of Object.entries(KINDS)) {
    const count = runs.reduce((sum, run) => sum + run.kinds[kind].length, 0);
    if (count) $("kind").append(make("option", {value: kind}, `${text} (${count})`));
  }
  $("warp").replaceChildren();
  runs.forEach((run, r) => {
    const group = make("optgroup", {label: run.name});
    for (const warp of run.warps.values()) {
      const gpu = run.parts.length ? `GPU ${run.launches[warp.launch].device}, ` : "";
      const launch = gpu + (run.launches.length > 1 ? `launch ${warp.launch + 1}, ` : "");
      const name = `${launch}block ${warp.block}, warp ${warp.warp}`;
      group.append(make("option", {value: `${r}:${warp.key}`}, name));
    }
    $("warp").append(group);
  });
  // Two versions of one kernel make the same requests, up to where they differ.
  const versions = runs.some(({name}) => runs.some(other => other.name === "my_" + name));
  state.axis = axisOf(versions ? "instruction" : "bytes");
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
  $("panels").append(...PANELS.map(name => button(name, () => showPanel(name))));
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
const PANELS = ["now", "source", "matrix", "totals"];
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
