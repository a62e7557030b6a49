import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const PRELOAD = fileURLToPath(new URL("../preload.cjs", import.meta.url));
const OURS = { package: path.join(path.dirname(PRELOAD), "index.js"), name: "workersai-emulator" };

/** A Miniflare that keeps its options, as a bundler exports it: by getters that cannot be redefined. */
const MINIFLARE = `
  class Miniflare {
    constructor(options) { this.options = options; }
    setOptions(options) { this.options = options; }
  }
  const convertV4MiniflareOptions = (options) => ({ converted: options });
  for (const [name, value] of Object.entries({ Miniflare, convertV4MiniflareOptions, other: 1 }))
    Object.defineProperty(module.exports, name, { get: () => value, enumerable: true });
  0 && (module.exports = { Miniflare, convertV4MiniflareOptions, other });`;

/** What a program prints as JSON that uses this Miniflare with the preload. */
function ran(program) {
  const folder = mkdtempSync(path.join(tmpdir(), "preload-"));
  const place = path.join(folder, "node_modules", "miniflare", "dist", "src");
  mkdirSync(place, { recursive: true });
  writeFileSync(path.join(place, "index.js"), MINIFLARE);
  writeFileSync(path.join(place, "..", "..", "package.json"), '{ "name": "miniflare", "main": "dist/src/index.js" }');
  writeFileSync(path.join(folder, "program.cjs"), `(async () => console.log(JSON.stringify(await (${program})())))()`);
  const told = execFileSync(process.execPath, ["--require", PRELOAD, "program.cjs"], { cwd: folder, encoding: "utf8" });
  return JSON.parse(told);
}

const unsafe = (name) => ({ name, type: "ai", plugin: OURS, options: {} });

test("an AI binding of Miniflare 4 becomes the plugin's, beside what was there", () => {
  const told = ran(`() => {
    const { Miniflare, other } = require("miniflare");
    const ai = { binding: "AI" };
    const running = new Miniflare({ port: 1, workers: [{ ai, unsafeBindings: [1] }, { name: "b" }] });
    const first = running.options;
    running.setOptions({ ai });
    return [other, first, running.options];
  }`);
  const workers = [{ unsafeBindings: [1, unsafe("AI")] }, { name: "b" }];
  assert.deepEqual(told, [1, { port: 1, workers }, { unsafeBindings: [unsafe("AI")] }]);
});

test("an AI binding of Miniflare 5 becomes the plugin's, in its own shape and in that of 4", () => {
  const told = ran(`async () => {
    const { Miniflare, convertV4MiniflareOptions } = await import("miniflare");
    const env = { AI: { type: "ai" }, KV: { type: "kv" } };
    return [
      convertV4MiniflareOptions({ ai: { binding: "AI" } }),
      new Miniflare({ workers: [{ config: { name: "a", env } }] }).options,
    ];
  }`);
  const env = { AI: { type: "unsafe:ai", dev: { plugin: OURS, options: {} } }, KV: { type: "kv" } };
  assert.deepEqual(told, [
    { converted: { unsafeBindings: [unsafe("AI")] } },
    { workers: [{ config: { name: "a", env } }] },
  ]);
});
