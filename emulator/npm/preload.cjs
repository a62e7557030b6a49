// For configurations that nobody may touch:
//
//     NODE_OPTIONS="--require workersai-emulator/preload.cjs" wrangler dev --local
//
// Miniflare is given the emulator's plugin in the place of each AI binding, as soon as it is loaded.
"use strict";

const Module = require("node:module");
const path = require("node:path");

const OURS = { package: path.join(__dirname, "index.js"), name: "workersai-emulator" };
const MINIFLARE = path.join("miniflare", "dist", "src", "index.js");

const load = Module._extensions[".js"];
Module._extensions[".js"] = function (module, filename) {
  load.call(this, module, filename);
  if (filename.endsWith(path.sep + MINIFLARE)) module.exports = pointed(module.exports);
};

function pointed(miniflare) {
  const { Miniflare, convertV4MiniflareOptions } = miniflare;
  const replaced = {
    Miniflare: class extends Miniflare {
      constructor(options) {
        super(withPlugin(options));
      }

      setOptions(options) {
        return super.setOptions(withPlugin(options));
      }
    },
  };
  if (convertV4MiniflareOptions) {
    replaced.convertV4MiniflareOptions = (options) => convertV4MiniflareOptions(withPlugin(options));
  }
  const members = Object.getOwnPropertyDescriptors(miniflare);
  for (const [name, value] of Object.entries(replaced)) members[name] = { value, enumerable: true };
  return Object.create(Object.getPrototypeOf(miniflare), members);
}

function withPlugin(options) {
  if (Array.isArray(options?.workers)) return { ...options, workers: options.workers.map(workerWithPlugin) };
  return workerWithPlugin(options);
}

/** Miniflare 4 has `ai` beside the other options of a Worker, 5 has a binding of the type "ai" in `config.env`. */
function workerWithPlugin(worker) {
  if (worker?.ai) {
    const { ai, ...others } = worker;
    const ours = { name: ai.binding, type: "ai", plugin: OURS, options: {} };
    return { ...others, unsafeBindings: [...(worker.unsafeBindings ?? []), ours] };
  }
  const bindings = Object.entries(worker?.config?.env ?? {});
  if (!bindings.some(([, binding]) => binding.type === "ai")) return worker;
  const env = bindings.map(([name, binding]) => [
    name,
    binding.type === "ai" ? { type: "unsafe:ai", dev: { plugin: OURS, options: {} } } : binding,
  ]);
  return { ...worker, config: { ...worker.config, env: Object.fromEntries(env) } };
}
