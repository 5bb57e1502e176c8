// The program under Node: node run.js DIRECTORY ARGUMENTS...; files of --json and --trace are
// written to the disk.
"use strict";
const fs = require("fs");
const path = require("path");

const [directory, ...args] = process.argv.slice(2);
globalThis.createSpmv = require(path.resolve(directory, "spmv.js"));
(0, eval)(
    fs.readFileSync(path.join(__dirname, "worker.js"), "utf8") +
    "\nglobalThis.runProgram = runProgram;");
const written = args.filter((_, i) => ["--json", "--trace"].includes(args[i - 1]));
const module_ = new WebAssembly.Module(fs.readFileSync(path.join(directory, "spmv.wasm")));
const inside = args.map((word, i) => (written.includes(word) ? `/written${i}` : word));
globalThis.runProgram({args: inside, module: module_}).then(({status, out, err, read}) => {
  inside.forEach((word, i) => {
    if (word !== args[i]) fs.writeFileSync(args[i], read(word));
  });
  if (out) process.stdout.write(out + "\n");
  if (err) process.stderr.write(err + "\n");
  process.exitCode = status;
});
