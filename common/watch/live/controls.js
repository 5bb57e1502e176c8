// The page comes alive where live.js is beside it (`make browser`): choose kernel and matrix, and
// the kernel runs in a worker. live.js defines SPMV_LIVE: {script: the worker's, wasm: the module,
// gzipped and in base64, kernels: --list --json}.

const LANES_PER_ROW = /_(2|4|8|16|32)$/;
// Of step 10, ways to exchange entries of x: `spmv steps --way`. (Persistent kernels need several
// threads of the host.)
const WAYS = ["packed", "parts"];
// What the sliders mean: the specification of `size` and `each`.
const MATRICES = {
  "grid, 5 points": {size: [4, 60, 16], of: n => `stencil2d:${n}x${n}`},
  "grid, 9 points": {size: [4, 40, 12], of: n => `stencil2d:${n}x${n},points=9`},
  "power law":
      {size: [32, 5000, 256], each: [2, 32, 8], of: (n, k) => `powerlaw:${n}x${n},nnz=${n * k}`},
  "random":
      {size: [32, 2000, 256], each: [1, 32, 8], of: (n, k) => `random:${n}x${n},nnz_per_row=${k}`},
  "banded": {
    size: [32, 2000, 256],
    each: [1, 33, 9],
    of: (n, k) => `banded:${n}x${n},nnz_per_row=${k},bandwidth=${2 * k}`
  },
  "finite elements": {size: [10, 300, 60], of: n => `fem:${n},block=3`},
  "dense": {size: [2, 96, 32], of: n => `dense:${n}x${n}`},
};

function startLive({script, wasm, kernels}) {
  const live = {number: 0, timer: 0, file: null};
  const source = URL.createObjectURL(new Blob([script], {type: "text/javascript"}));
  let worker;
  const startWorker = () => {
    worker = new Worker(source);
    worker.postMessage({wasm: Uint8Array.from(atob(wasm), c => c.charCodeAt(0))});
    worker.onmessage = ({data}) => answered(data);
    worker.onerror = event => ended(event.message);
  };

  const select = options => make(
      "select", {},
      ...options.map(([value, text]) => make("option", {value, textContent: text || value})));
  const slider = (min, max, value) => make("input", {type: "range", min, max, value});
  const label = (text, ...parts) => make("label", {}, `${text} `, ...parts);
  // A family is one kernel with several numbers of lanes per row; csr_scalar is the family's one
  // lane.
  const names = kernels.filter(k => !k.host && k.step > 0).map(k => k.name);
  const family = name => name.replace(LANES_PER_ROW, "");
  const lanesOfFamily = base =>
      [...base === "csr_vector" ? [1] : [],
       ...names.filter(name => LANES_PER_ROW.test(name) && family(name) === base)
           .map(name => +name.match(LANES_PER_ROW)[1])];
  const withLanes = (base, lanes) => (lanes === 1 ? "csr_scalar" : `${base}_${lanes}`);
  const families = [...new Set(
      names.map(name => (lanesOfFamily(family(name)).length > 2 ? family(name) : name)))];
  const infoOf = name =>
      kernels.find(k => k.name === name) || kernels.find(k => family(k.name) === name);
  const choices = [
    ...families.filter(name => !name.endsWith("_mistake"))
        .map(name => [name, `${String(infoOf(name).step).padStart(2, "0")} ${name}`]),
    ...WAYS.map(name => [name, `10 ${name}`])
  ];
  const mistakes = names.filter(name => name.endsWith("_mistake"));

  const kernel = select(choices), beside = select([["", "–"], ...choices]);
  const mistake = select([
    ["", "none"],
    ...mistakes.map(name => [name, `${name.replace("_mistake", "")}: ${infoOf(name).idea}`])
  ]);
  const gpus = slider(2, 4, 2), gpusText = make("output"),
        gpusLabel = label("GPUs", gpus, gpusText);
  const threads =
            select([["", "the step's"], ...[32, 64, 128, 256, 512, 1024].map(count => [count])]),
        threadsLabel = label("threads per block", threads);
  const lanes = slider(0, 5, 0), lanesText = make("output"),
        lanesLabel = label("lanes per row", lanes, lanesText);
  const matrix = select(Object.keys(MATRICES).map(name => [name]));
  const size = slider(4, 60, 16), sizeText = make("output"), each = slider(1, 32, 8),
        eachText = make("output");
  const eachLabel = label("nonzeros per row", each, eachText);
  const file = make("input", {type: "file", accept: ".mtx,.gz"});
  const precision = select([["f64"], ["f32"]]),
        schedule =
            select(["forward", "reverse", "random", "turns", "lockstep"].map(name => [name]));
  const says = make("output", {className: "says"});
  const stop = make("button", {type: "button", textContent: "stop", hidden: true});
  const box = $("live");
  box.append(
      make(
          "div", {className: "buttons"}, label("kernel", kernel), lanesLabel, threadsLabel,
          gpusLabel, label("beside", beside), label("mistake", mistake)),
      make(
          "div", {className: "buttons"}, label("matrix", matrix), label("size", size, sizeText),
          eachLabel, label("your .mtx", file), label("precision", precision),
          label("schedule", schedule), says, stop));
  box.hidden = false;
  box.open = innerWidth > 700;
  box.ontoggle = redraw;
  mistake.parentNode.hidden = !mistakes.length;

  const chosen = () => {
    const base = kernel.value, steps = lanesOfFamily(base);
    return mistake.value ||
        (steps.length > 2 ? withLanes(base, steps[Math.min(+lanes.value, steps.length - 1)]) :
                            base);
  };
  const isWay = () => !mistake.value && WAYS.includes(kernel.value);
  const specification = () => matrix.value === "file" ?
      `/${live.file.name}` :
      MATRICES[matrix.value].of(+size.value, +each.value);
  const showChoice = () => {
    const steps = lanesOfFamily(kernel.value);
    lanesLabel.hidden = steps.length < 3 || mistake.value !== "";
    lanes.max = Math.max(1, steps.length - 1);
    lanesText.textContent = steps[Math.min(+lanes.value, steps.length - 1)];
    gpusLabel.hidden = !isWay();
    gpusText.textContent = gpus.value;
    for (const one of [threadsLabel, precision.parentNode]) one.hidden = isWay();
    const kind = MATRICES[matrix.value];
    size.parentNode.hidden = !kind;
    eachLabel.hidden = !kind || !kind.each;
    sizeText.textContent = size.value;
    eachText.textContent = each.value;
  };
  const setRanges = () => {
    const kind = MATRICES[matrix.value];
    if (kind) [size.min, size.max, size.value] = kind.size;
    if (kind?.each) [each.min, each.max, each.value] = kind.each;
  };
  // The address names what was chosen, so that it can be sent, and opens with it.
  const controls =
      {run: kernel, beside, mistake, matrix, precision, schedule, threads, lanes, size, each, gpus};
  const run = () => {
    state.choices =
        Object.fromEntries(Object.entries(controls).map(([name, {value}]) => [name, value]));
    const other = beside.value && WAYS.includes(beside.value) === isWay() ? [beside.value] : [];
    const wanted = [...new Set([...other, chosen()])];
    says.textContent = "runs …";
    stop.hidden = false;
    const files = matrix.value === "file" ? {[`/${live.file.name}`]: live.file.bytes} : {};
    live.wanted = wanted;
    const which = isWay() ? ["steps", "--gpus", gpus.value, "--way"] : [
      ...threads.value ? ["--block-threads", threads.value] : [], "--precision", precision.value,
      "--kernel"
    ];
    worker.postMessage({
      number: ++live.number,
      files,
      args: [
        ...which, wanted.join(","), "--matrix", specification(), "--schedule", schedule.value,
        "--verify-only", "--trace-limit", "32", "--workers", "1"
      ]
    });
  };
  function choose() {
    showChoice();
    clearTimeout(live.timer);
    live.timer = setTimeout(run, 60);
  }

  // Of a run that has nothing to show: what is shown stays, and that is said.
  const ended = what => {
    stop.hidden = true;
    says.textContent = `${what} (below: ${document.title})`;
    box.dataset.ran = live.number;
  };
  stop.onclick = () => {
    worker.terminate();
    ++live.number;
    startWorker();
    ended("stopped");
  };
  // The line that says why a kernel does not suit the matrix, or what was wrong.
  const reasonOf = (out, err) => err.split("\n").find(line => line) ||
      out.split("\n").find(
          line => live.wanted.some(name => line.startsWith(`${name} `) && line.includes(": "))) ||
      `${live.wanted.join(" and ")} cannot run on ${specification()}`;
  const answered = ({number, out, err, text, milliseconds}) => {
    if (number !== live.number) return;
    const traces = text.split("\n").filter(line => line).map(line => JSON.parse(line));
    if (!traces.length) return ended(reasonOf(out, err));
    if (traces.some(trace => !trace.events.length))
      return ended(`on ${traces[0].matrix.name} nothing is launched`);
    stop.hidden = true;
    traces.sort((a, b) => live.wanted.indexOf(a.kernel.name) - live.wanted.indexOf(b.kernel.name));
    // The same kind of request as before, if there is one.
    const like = runs[state.focus].moments[momentOf(state.focus)].array?.name ?? "values";
    $("tour").hidden = true;
    load({traces, tour: [], find: "", like});
    says.textContent = `${Math.round(milliseconds)} ms`;
    const fixed = traces.find(
        trace => !isWay() && threads.value &&
            !trace.launches.some(({block}) => block[0] * block[1] * block[2] === +threads.value));
    if (fixed)
      says.textContent += `; the source of ${fixed.kernel.name} fixes its threads per block`;
    document.title = `${runs.map(other => other.name).join(" and ")} on ${traces[0].matrix.name}`;
    document.querySelector("h1").textContent = document.title;
    if (number === 1 && state.opened.has("run") && state.opened.has("event"))
      goToEvent(state.opened.get("kernel"), +state.opened.get("event"));
    box.dataset.ran = number;
  };
  startWorker();

  const take = async given => {
    if (!given) return;
    const stream = given.name.endsWith(".gz") ?
        given.stream().pipeThrough(new DecompressionStream("gzip")) :
        given.stream();
    live.file = {
      name: given.name.replace(/\.gz$/, "").replace(/[^\w.-]/g, "_"),
      bytes: new Uint8Array(await new Response(stream).arrayBuffer())
    };
    if (![...matrix.options].some(option => option.value === "file"))
      matrix.append(make("option", {value: "file"}));
    matrix.lastChild.textContent = live.file.name;
    matrix.value = "file";
    choose();
  };
  file.onchange = () => take(file.files[0]);
  addEventListener("dragover", event => event.preventDefault());
  addEventListener("drop", event => {
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  for (const control of [kernel, beside, mistake, precision, schedule, threads])
    control.onchange = choose;
  for (const control of [lanes, size, each, gpus]) control.oninput = choose;
  matrix.onchange = () => {
    setRanges();
    choose();
  };

  // As the page opened.
  const {kernel: shown, matrix: of} = runs[runs.length - 1].trace,
                                grid = of.name.match(/^stencil2d:(\d+)x\1$/);
  const choiceOf =
      name => [name, family(name)].find(one => choices.some(([value]) => value === one)) || "";
  kernel.value = choiceOf(shown.name) || (runs[0].parts.length ? WAYS[0] : kernel.value);
  if (runs.length > 1) beside.value = choiceOf(runs[0].name);
  const steps = lanesOfFamily(kernel.value), own = shown.name.match(LANES_PER_ROW);
  lanes.value = Math.max(0, own ? steps.indexOf(+own[1]) : 0);
  setRanges();
  if (grid) size.value = grid[1];
  showChoice();

  // As its address says. A file of one's own has to be dropped onto the page again.
  if (!state.opened.has("run")) return;
  const setFrom = (name, control) => {
    const value = state.opened.get(name), of = control.options;
    if (value !== null && (!of || [...of].some(option => option.value === value)))
      control.value = value;
    if (control === kernel) lanes.max = Math.max(1, lanesOfFamily(kernel.value).length - 1);
    if (control === matrix) setRanges();
  };
  Object.entries(controls).forEach(entry => setFrom(...entry));
  choose();
}
if (window.SPMV_LIVE)
  startLive(window.SPMV_LIVE);
else
  addEventListener("spmv-live", () => startLive(window.SPMV_LIVE), {once: true});
