// A trace (README.md), decoded so that any of its moments can be shown at once. A moment is an
// event at which there is something to see. What holds at a moment is looked up: it is never
// replayed from the start, except for the lanes of one warp.
"use strict";

const SECTOR = 32, LANES = 32, BANKS = 32, BANK_BYTES = 4;
const ACCESSES = new Set(["load", "store", "atomic"]);

const EVERY_LANE = Array.from({length: LANES}, (_, lane) => lane);
const lanesOfMasks = new Map();  // a run has few masks

function lanesOf(mask) {
  if (!lanesOfMasks.has(mask)) lanesOfMasks.set(mask, EVERY_LANE.filter(lane => mask >>> lane & 1));
  return lanesOfMasks.get(mask);
}

function addressesOf(deltas) {
  let address = 0;
  return deltas.map(delta => address += delta);
}

// To the list that a map has for a key.
function addTo(map, key, value) {
  if (map.has(key))
    map.get(key).push(value);
  else
    map.set(key, [value]);
}

// What simt counted of a request.
function countsOf(mask, [used, sectors, lines, passes, idealPasses, l2, dram]) {
  const lanes = lanesOf(mask).length, ideal = sectors && Math.ceil(used / SECTOR);
  return {lanes, used, sectors, lines, ideal, passes, idealPasses, l2, dram};
}

class Run {
  constructor(trace) {
    this.trace = trace;
    this.name = trace.kernel.name;
    this.matrix = trace.matrix;
    this.launches = trace.launches;
    this.parts = trace.parts || [];  // of each GPU, where several share the matrix
    this.failed = trace.events.some(event => event[0] === "failure");
    this.arrays = trace.arrays.map(array => ({...array, element: 8, float: false}));
    this.instructions = trace.instructions.map(
        (instruction, number) => ({...this.readSource(instruction), number}));
    this.instructions.forEach(i => {
      if (i.array !== undefined)
        this.arrays[i.array].element = Math.min(this.arrays[i.array].element, i.size);
    });
    for (const array of this.arrays) {
      const part = this.parts[array.device];
      if (array.name === "x" && part && array.bytes === part.columns.length * array.element)
        array.part = part;
    }
    this.decode();
    this.findNonzeros();
    this.findKinds();
  }

  source(place) {
    const [file, line] = this.trace.places[place];
    return {file, line};
  }

  // --- From events to moments

  decode() {
    const events = this.trace.events;
    this.moments = [];
    this.counted = 0;  // requests so far
    this.momentOfEvent = new Int32Array(events.length);
    this.warps = new Map();  // "launch/block/warp" -> {launch, block, warp, moments, last}
    this.arrays.forEach(array => {
      array.fetched =
          new Int32Array(Math.ceil(array.bytes / SECTOR)).fill(events.length);  // first moment
      array.writes = new Map();   // element -> [[moment, value], ...]
      array.writers = new Map();  // element -> the warp that wrote it last
    });
    const sums = [
      "requests", "lanes", "used", "sectors", "matrixRequests", "matrixSectors", "xRequests",
      "xSectors", "storeRequests", "storeSectors", "linkSectors", "linkBytes", "l2Sectors",
      "dramSectors"
    ];
    this.sums = Object.fromEntries(
        sums.map(name => [name, new Float64Array(events.length + 1)]));  // before each moment
    const all = Object.values(this.sums);
    let launch = -1, block = -1, warp = null;
    this.touchedBy = this.launches.map(() => new Set());  // arrays, by launch
    const begun = new Set();
    this.recordedOn = new Map();  // event -> the stream that recorded it last
    events.forEach((event, e) => {
      const [kind, first, second] = event;
      this.momentOfEvent[e] = Math.max(0, this.moments.length - 1);
      if (kind === "launch") {
        [launch, block, warp] = [first, -1, null];
        if (begun.has(launch)) return;
        begun.add(launch);
      }
      if (kind === "block") [block, warp] = [first, null];
      if (kind === "warp") {
        const key = `${launch}/${block}/${first}`, last = new Int32Array(LANES).fill(-1);
        if (!this.warps.has(key))
          this.warps.set(key, {key, launch, block, warp: first, moments: [], last});
        warp = this.warps.get(key);
      }
      if (kind === "block" || kind === "warp") return;
      const moment = {event: e, kind, launch, block, warp, mask: 0, place: -1};
      if (kind === "at") {
        const {file, line} = this.source(first);
        const before = this.moments[warp.moments.at(-1)];
        if (!this.trace.sources[file].file) return;  // where the launch calls the kernel
        moment.place = first;
        moment.mask = second >>> 0;
        if (before?.mask === moment.mask && before.place >= 0) {
          const there = this.source(before.place);
          if (there.file === file && there.line === line) return;
        }
      } else if (ACCESSES.has(kind) || kind === "warp operation" || kind === "wait") {
        moment.instruction = this.instructions[first];
        moment.array = this.arrays[moment.instruction.array];
        moment.place = moment.instruction.place;
        moment.mask = second >>> 0;
      }
      const m = this.moments.length;
      this.momentOfEvent[e] = m;
      this.moments.push(moment);
      if (moment.mask) {
        warp.moments.push(m);
        for (const lane of lanesOf(moment.mask)) warp.last[lane] = m;
      }
      for (const sum of all) sum[m + 1] = sum[m];
      if (ACCESSES.has(kind)) this.addRequest(moment, m);
      if (kind === "record") this.recordedOn.set(first, second);
      if (kind === "stream wait")
        Object.assign(moment, {stream: first, on: this.recordedOn.get(second)});
      if (kind === "record") moment.stream = second;
      if (kind === "copy") this.addCopy(moment, event, m);
    });
    this.count = this.moments.length;
  }

  // A copy writes elements of its target; with what value is not recorded.
  addCopy(moment, [, to, offset, from, fromOffset, bytes], m) {
    const of = array => array === null ? null : this.arrays[array];
    Object.assign(moment, {to: of(to), toOffset: offset, from: of(from), fromOffset, bytes});
    if (moment.to && moment.from && moment.to.device !== moment.from.device)
      this.sums.linkBytes[m + 1] += bytes;
    if (!moment.to) return;
    for (let at = offset; at < offset + bytes; at += moment.to.element) {
      addTo(moment.to.writes, Math.floor(at / moment.to.element), [m, null]);
    }
  }

  // Whether a request goes to the memory of another GPU.
  overLink({array, launch}) {
    return Boolean(array) && array.space === "global" && launch >= 0 &&
        array.device !== this.launches[launch].device;
  }

  addRequest(moment, m) {
    const request = this.request(moment), {array, addresses, instruction} = request;
    this.touchedBy[moment.launch].add(array);
    const counts = moment.counts = countsOf(moment.mask, this.trace.requests[this.counted++]);
    const {lanes, used, sectors, l2, dram} = counts;
    const group = moment.kind !== "load" ? "store" : array.name === "x" ? "x" : "matrix";
    const add = {
      requests: 1,
      lanes,
      used,
      sectors,
      [`${group}Requests`]: 1,
      [`${group}Sectors`]: sectors,
      linkSectors: this.overLink(moment) ? sectors : 0,
      l2Sectors: l2,
      dramSectors: dram
    };
    if (array.space !== "shared")
      for (const [name, count] of Object.entries(add)) this.sums[name][m + 1] += count;
    if (array.writers.size) this.findGivers(moment, request);
    for (const address of addresses)
      for (let s = Math.floor(address / SECTOR); s * SECTOR < address + instruction.size; ++s)
        array.fetched[s] = Math.min(array.fetched[s], m);
    array.float ||=
        request.values.flat().some(value => typeof value === "number" && !Number.isInteger(value));
    if (moment.kind === "load") return;
    const left = request.after || request.values;
    addresses.forEach((address, i) => {
      const first = Math.floor(address / array.element);
      [left[i]].flat().forEach((word, part) => {
        addTo(array.writes, first + part, [m, word]);
        array.writers.set(first + part, moment.warp);
      });
    });
  }

  // What a request finds that other warps have left there: moment.givers, warp -> the elements.
  findGivers(moment, {array, addresses, instruction}) {
    if (moment.kind === "store") return;
    for (const address of addresses) {
      for (let at = address; at < address + instruction.size; at += array.element) {
        const element = Math.floor(at / array.element), giver = array.writers.get(element);
        if (!giver || giver === moment.warp) continue;
        moment.givers = moment.givers || new Map();
        if (!moment.givers.get(giver)?.includes(element)) addTo(moment.givers, giver, element);
      }
    }
  }

  // The lanes, addresses and values of a request; `values` has a list where an access is of two
  // words.
  request(moment) {
    const event = this.trace.events[moment.event];
    const look = value => Array.isArray(value) ? value.map(look) : this.trace.values[value] ?? null;
    const {instruction, array} = moment, lanes = lanesOf(moment.mask), what = {lanes, instruction};
    if (moment.kind === "warp operation") {
      const operands = event[3] && event[3].map(look), results = event[4];
      if (!Number.isInteger(results))
        return {...what, operands, results: results && results.map(look)};
      const sources = this.trace.values[results];
      return {
        ...what,
        operands,
        sources: sources.map((lane, i) => lane ?? lanes[i]),
        results: sources.map(lane => lane === null ? null : operands[lanes.indexOf(lane)])
      };
    }
    const addresses = addressesOf(event[3]), after = event[5] && event[5].map(look);
    return {...what, array, addresses, values: event[4].map(look), after};
  }

  // --- What the source says about an instruction

  // The names of the variables of which an instruction reveals the value: `index` of the array,
  // `result` of a load or operation, `operand` of a shuffle; `product`: where a sum of products
  // grows.
  readSource(instruction) {
    const {file, line} = this.source(instruction.place);
    const lines = this.trace.sources[file].text.split("\n");
    let text = lines[line - 1] || "";
    if ((text.match(/\(/g) || []).length > (text.match(/\)/g) || []).length)
      text += " " + (lines[line] || "").trim();
    const found = {...instruction, file, line, text};
    if (instruction.array === undefined) {
      const shuffle = text.match(/__\w+_sync\(\s*[^,()]+,\s*([A-Za-z_]\w*)\s*[,)]/);
      if (shuffle) found.operand = shuffle[1];
      const assigned = text.match(/([A-Za-z_]\w*)\s*(\+=|=)\s*__\w+_sync\(/);
      if (assigned) [, found.result, found.how] = assigned;
      return found;
    }
    const name = this.trace.arrays[instruction.array].name;
    const index = text.match(new RegExp(`\\b${name}\\[([A-Za-z_]\\w*)\\]`));
    if (index) found.index = index[1];
    const assigned = text.match(new RegExp(`\\b([A-Za-z_]\\w*)\\s*=\\s*${name}\\[[^\\]]*\\];`));
    if (assigned && instruction.access === "load") found.result = assigned[1];
    const old = text.match(/([A-Za-z_]\w*)\s*=\s*atomic\w+\(/);
    if (old && instruction.access === "atomic") found.result = old[1];
    const product = text.match(
        /([A-Za-z_]\w*)\s*\+=\s*(\w+)\[[^\]]*\]\s*\*\s*(?:(\w+)\[|[\w:]*fetch<\w+>\(\s*(\w+),)/);
    if (product && (product[3] || product[4]) === name)
      found.product = {sum: product[1], factor: product[2]};
    return found;
  }

  // The lanes of a warp at moment m: where each is, what it last did, and its variables. (A sum is
  // what the lane's products add up to; where a shuffle shows that it is something else it is not
  // shown.)
  lanesAt(warp, m) {
    const lanes = Array.from(
        {length: LANES}, (_, lane) => ({lane, place: -1, vars: new Map(), last: {}, did: ""}));
    if (!warp) return lanes;
    for (const at of warp.moments) {
      if (at > m) break;
      const moment = this.moments[at], instruction = moment.instruction;
      if (!instruction) {
        for (const lane of lanesOf(moment.mask)) lanes[lane].place = moment.place;
        continue;
      }
      const request = moment.kind === "wait" ? {lanes: lanesOf(moment.mask)} : this.request(moment);
      request.lanes.forEach((id, i) => {
        const lane = lanes[id];
        lane.place = moment.place;
        lane.did = moment.kind;
        if (lane.sumLine > instruction.line) {
          lane.vars.delete(lane.sumName);
          lane.sumLine = 0;
        }
        if (request.array) this.learnAccess(lane, instruction, request, i);
        if (request.operands) this.learnOperation(lane, instruction, request, i);
      });
    }
    return lanes;
  }

  learnAccess(lane, instruction, request, i) {
    const {array, addresses} = request;
    const element = Math.floor(addresses[i] / array.element);
    const value = [(request.after || request.values)[i]].flat()[0];
    lane.last = {array, element, value, named: Boolean(instruction.index)};
    lane[array.name] = value;
    if (instruction.index) lane.vars.set(instruction.index, element);
    if (instruction.result) lane.vars.set(instruction.result, request.values[i]);
    if (instruction.product && !this.doubtful) {
      const {sum, factor} = instruction.product;
      const product = lane[factor] * value;
      if (Number.isFinite(product)) {
        lane.vars.set(sum, (lane.sumLine ? lane.vars.get(sum) || 0 : 0) + product);
        [lane.sumLine, lane.sumName] = [instruction.line, sum];
      }
    }
  }

  learnOperation(lane, instruction, request, i) {
    const {operand, result, how} = instruction;
    const known = lane.vars.get(operand), value = request.operands[i], got = request.results[i];
    if (operand && operand === lane.sumName && typeof value === "number" &&
        Math.abs(known - value) > 1e-5 * (1 + Math.abs(value))) {
      this.doubtful = true;
    }
    if (operand && operand !== "predicate") lane.vars.set(operand, value);
    if (result && how === "=") lane.vars.set(result, got);
    if (result && how === "+=" && typeof got === "number")
      lane.vars.set(result, (operand === result ? value : lane.vars.get(result) || 0) + got);
    lane.last = {operation: instruction.operation, value: got};
    lane.sumLine = 0;
  }

  // --- Nonzeros

  // Which nonzero a lane multiplies at a moment. Where the kernel reads the row and the column of a
  // position, those say it; where it reads columns in the order of CSR, the position does. Else it
  // is the column of x and the row that the thread writes next.
  findNonzeros() {
    const {row_offsets: offsets, column_indices: columns, nonzeros} = this.matrix;
    this.doneAt = new Int32Array(nonzeros).fill(this.count);
    this.nonzerosOf = new Map();  // moment -> [lane, nonzero] of each lane
    const search = (row, column) => {
      for (let k = offsets[row]; k < offsets[row + 1]; ++k)
        if (columns[k] === column) return k;
      return -1;
    };
    this.rowOf = new Int32Array(nonzeros);
    for (let row = 0; row < this.matrix.rows; ++row)
      this.rowOf.fill(row, offsets[row], offsets[row + 1]);
    if (this.parts.length) return;
    // position -> what was loaded there
    const read = {row_indices: new Map(), column_indices: new Map()};
    for (const moment of this.moments) {
      const {array} = moment;
      if (!array || moment.kind !== "load" || !read[array.name]) continue;
      const {addresses, values} = this.request(moment);
      addresses.forEach((address, i) => read[array.name].set(address / array.element, values[i]));
    }
    const inOrder = read.column_indices.size > 0 &&
        [...read.column_indices].every(([k, column]) => columns[k] === column);
    const byRow = read.row_indices.size >= nonzeros;
    const next = new Map();  // thread -> the row that it writes next
    for (let m = this.count - 1; m >= 0; --m) {
      const moment = this.moments[m], {array} = moment;
      const byPosition = (byRow || inOrder) && array?.name === "values";
      const byColumn = !byRow && !inOrder && (array?.name === "x" || array?.name === "y");
      if (!byPosition && !byColumn) continue;
      const {lanes, addresses} = this.request(moment);
      const found = [];
      lanes.forEach((lane, i) => {
        const element = Math.floor(addresses[i] / array.element);
        const thread = `${moment.warp.key}/${lane}`;
        let nonzero = -1;
        if (byPosition && byRow)
          nonzero = search(read.row_indices.get(element), read.column_indices.get(element));
        else if (byPosition)
          nonzero = element;
        else if (array.name === "x" && next.has(thread))
          nonzero = search(next.get(thread), element);
        else if (array.name === "y" && moment.kind !== "load")
          next.set(thread, element);
        if (nonzero >= 0 && nonzero < nonzeros) found.push([lane, nonzero]);
      });
      if (found.length) this.multiplies(m, found);
    }
  }

  multiplies(m, found) {
    this.nonzerosOf.set(m, found);
    for (const [, nonzero] of found) this.doneAt[nonzero] = Math.min(this.doneAt[nonzero], m);
  }

  // --- Events to jump to

  findKinds() {
    this.kinds = Object.fromEntries(Object.keys(KINDS).map(kind => [kind, []]));
    const wrong = new Map(this.trace.wrong_rows.map(row => [row.row, row]));
    const lastOfRow = new Map();
    let worst = 0;
    const seen = new Set();
    this.moments.forEach((moment, m) => {
      const {counts, kind} = moment;
      if (moment.instruction) {
        const what =
            `${moment.instruction.number}/${counts ? `${counts.sectors}/${counts.passes}` : ""}`;
        moment.isNew = !seen.has(what);
        seen.add(what);
      }
      if (counts && counts.sectors) {
        if (counts.sectors > counts.ideal) this.kinds.uncoalesced.push(m);
        if (counts.sectors - counts.ideal > worst)
          [worst, this.kinds.worst[0]] = [counts.sectors - counts.ideal, m];
      }
      if (counts && counts.passes > counts.idealPasses) this.kinds.conflict.push(m);
      if (KIND_OF[kind]) this.kinds[KIND_OF[kind]].push(m);
      if (this.overLink(moment)) this.kinds.link.push(m);
      if (moment.givers) this.kinds.giver.push(m);
      if (kind === "failure") this.kinds.wrong.push(this.momentOfFailure(m));
      if (moment.mask && moment.warp) {
        let live = 0;
        for (let lane = 0; lane < LANES; ++lane)
          if (moment.warp.last[lane] >= m) live |= 1 << lane;
        moment.live = live >>> 0;
        if (moment.live !== moment.mask) this.kinds.divergence.push(m);
      }
      if (wrong.size && (kind === "store" || kind === "atomic") && moment.array.name === "y") {
        const {addresses, array} = this.request(moment);
        for (const address of addresses) lastOfRow.set(Math.floor(address / array.element), m);
      }
    });
    for (const [row, found] of wrong) {
      if (!lastOfRow.has(row)) continue;
      const moment = this.moments[lastOfRow.get(row)];
      if (!moment.wrong) this.kinds.wrong.push(lastOfRow.get(row));
      const {lanes, addresses, array} = this.request(moment);
      const lane =
          lanes[addresses.findIndex(address => Math.floor(address / array.element) === row)];
      moment.wrong = [
        ...moment.wrong || [], {lane, ...found}
      ];  // the rows of which it leaves a wrong element of y
    }
    this.kinds.wrong.sort((a, b) => a - b);
  }

  // The access that a report names by line, block and thread; else the last thing that this thread
  // did.
  momentOfFailure(m) {
    const text = this.trace.events[this.moments[m].event][1];
    const place = text.match(/ at [^ ]*?:(\d+), block \((\d+),\d+,\d+\), thread \((\d+),/);
    if (!place) return Math.max(0, m - 1);
    const [line, block, thread] = place.slice(1).map(Number);
    let last;
    for (let i = m - 1; i >= 0 && this.moments[i].launch === this.moments[m].launch; --i) {
      const {instruction, mask, warp} = this.moments[i];
      if (!warp || warp.block !== block || warp.warp !== thread >> 5 ||
          !(mask >>> (thread & 31) & 1))
        continue;
      if (instruction && instruction.line === line) return i;
      last ??= i;
    }
    return last ?? Math.max(0, m - 1);
  }

  // The running totals after moment m, as the columns of `make run` name them.
  totals(m) {
    const at = name => this.sums[name][m + 1];
    const moved = at("sectors") * SECTOR;
    const format = (a, b) => b ? number(a / b) : "-";
    const estimate = this.trace.estimates.find(e => e.limit);  // of the whole product
    const [unit, size] = this.trace.compulsory_bytes < 1e6 ? ["kB", 1e3] : ["MB", 1e6];
    return {
      [`needed ${unit}`]: number(this.trace.compulsory_bytes / size),
      [`moved ${unit}`]: number(moved / size),
      "used": moved ? `${Math.round(100 * at("used") / moved)}%` : "-",
      "matrix": format(at("matrixSectors"), at("matrixRequests")),
      "x": format(at("xSectors"), at("xRequests")),
      "stores": format(at("storeSectors"), at("storeRequests")),
      "lanes": format(at("lanes"), at("requests")),
      "moved / needed":
          this.trace.compulsory_bytes ? (moved / this.trace.compulsory_bytes).toFixed(2) : "-",
      "requests": String(at("requests")),
      ...estimate && {"limit": estimate.limit},
      ...this.parts.length &&
          {"link kB": number((at("linkSectors") * SECTOR + at("linkBytes")) / 1e3)},
    };
  }
}

// What the columns of totals say.
const COLUMNS = {
  needed: "bytes of the matrix, x and y, each once",
  moved: "32 bytes for each sector that a request touched, before caches",
  used: "part of the moved bytes that the requesting warp used",
  matrix: "sectors per request of row offsets, columns and values together",
  x: "sectors per request of x",
  stores: "sectors per request of stores and atomics",
  lanes: "active lanes per request, of 32",
  "moved / needed": "1 would be: every byte asked for once, and used",
  requests: "loads, stores and atomics of warps",
  link: "bytes between GPUs",
};

// Names of what one can jump to.
const KINDS = {
  uncoalesced: "uncoalesced request",
  worst: "worst request",
  divergence: "divergence",
  conflict: "bank conflict",
  barrier: "barrier",
  operation: "warp operation",
  atomic: "atomic",
  store: "store",
  copy: "copy",
  link: "request over the link",
  event: "event or wait of a stream",
  giver: "value from another warp",
  wrong: "what is wrong",
};

// The event of a moment, where it alone makes it one of them.
const KIND_OF = {
  wait: "barrier",
  "warp operation": "operation",
  atomic: "atomic",
  store: "store",
  copy: "copy",
  record: "event",
  "stream wait": "event"
};

// As the table of `make run` writes numbers.
function number(value) {
  if (!Number.isFinite(value)) return "-";
  if (value === 0) return "0";
  const digits = Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toFixed(Math.min(digits, 3));
}

function show(value, array) {
  if (value === undefined || value === null) return "?";
  if (Array.isArray(value)) return value.map(v => show(v, array)).join(", ");
  if (value === "~") return array && array.float ? "NaN" : "-1";
  if (typeof value === "string") return value === "nan" ? "NaN" : value;
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) < 1e-3 || Math.abs(value) >= 1e4 ? value.toExponential(1) :
                                                            value.toFixed(3);
}

// For the narrow cell of a lane.
function short(value) {
  return typeof value === "number" && !Number.isInteger(value) && Math.abs(value) < 100 ?
      value.toFixed(2) :
      show(value);
}
