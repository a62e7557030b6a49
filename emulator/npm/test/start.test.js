import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, test } from "node:test";

import { start, VERSION } from "workersai-emulator";

delete process.env.WORKERS_AI_EMULATOR_URL;
afterEach(() => delete process.env.WORKERS_AI_EMULATOR_URL);

/** A command that serves what `start` looks at, of this version; it prints its arguments in `health`. */
const stand = (version) => `
  const { createServer } = require("node:http");
  const body = JSON.stringify({ version: "${version}", told: process.argv.slice(1) });
  const server = createServer((request, response) => response.end(body));
  server.listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port));`;
const command = (code) => [process.execPath, "-e", code, "--"];

test("an emulator is started on a free port, found by the environment, and stopped", async () => {
  const emulator = await start({ command: command(stand(VERSION)), args: ["--script", "instant"] });
  assert.equal(process.env.WORKERS_AI_EMULATOR_URL, emulator.url);
  const { told } = await emulator.ask("GET", "health");
  assert.deepEqual(told, ["serve", "--port", "0", "--script", "instant"]);
  await emulator.stop();
  assert.equal(process.env.WORKERS_AI_EMULATOR_URL, undefined);
  await assert.rejects(fetch(emulator.url));
});

test("one of another version is not left running", async () => {
  await assert.rejects(start({ command: command(stand("99.0.0")) }), /is 99\.0\.0 and the npm package/);
});

test("one that ends before it is up is told with its own words", async () => {
  const failing = command("console.error('address in use'); process.exit(2)");
  await assert.rejects(start({ command: failing }), /ended before it was up: address in use/);
});

test("uvx and pipx are tried after the command itself", async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), "path-"));
  await assert.rejects(start({ env: { PATH: folder } }), /none of workersai-emulator, uvx, pipx is on PATH/);
  const pipx = path.join(folder, "pipx");
  writeFileSync(pipx, `#!${process.execPath}\n${stand(VERSION)}`);
  chmodSync(pipx, 0o755);
  const emulator = await start({ env: { PATH: folder } });
  t.after(() => emulator.stop());
  const { told } = await emulator.ask("GET", "health");
  assert.deepEqual(told.slice(1), ["run", `workersai-emulator==${VERSION}`, "serve", "--port", "0"]);
});
