// Runs the program in a worker, or under Node: a fresh instance of the module for each run, since
// the program keeps what it was told.
"use strict";

// `options`: {args, files: {path: text or bytes}, module: WebAssembly.Module}. Returns {status,
// out, err, read}.
async function runProgram({args, files = {}, module}) {
  const out = [], err = [];
  const program = await createSpmv({
    print: line => out.push(line),
    printErr: line => err.push(line),
    instantiateWasm: (imports, receive) => {
      const instance = new WebAssembly.Instance(module, imports);
      receive(instance, module);
      return instance.exports;
    },
  });
  for (const [path, content] of Object.entries(files)) program.FS.writeFile(path, content);
  const status = program.callMain(args);
  const read = path =>
      (program.FS.analyzePath(path).exists ? program.FS.readFile(path, {encoding: "utf8"}) : "");
  return {status, out: out.join("\n"), err: err.join("\n"), read};
}

// From the page: {number, args, files}; the answer has the same number.
if (typeof WorkerGlobalScope !== "undefined") {
  let module;  // a promise
  const load = async wasm => {
    const bytes = new Blob([wasm]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(bytes).arrayBuffer());
  };
  onmessage = async ({data: {wasm, number, args, files}}) => {
    if (wasm) {
      module = load(wasm);
      return;
    }
    const start = performance.now();
    try {
      const {out, err, read} = await runProgram(
          {args: [...args, "--trace", "/trace.jsonl"], files, module: await module});
      // As text: the page parses it in half of the time in which objects are copied from here to
      // there.
      postMessage(
          {number, out, err, text: read("/trace.jsonl"), milliseconds: performance.now() - start});
    } catch (error) {
      postMessage({
        number,
        out: "",
        err: String((error && error.message) || error),
        text: "",
        milliseconds: 0
      });
    }
  };
}
