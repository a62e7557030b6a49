import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { VERSION } from "workersai-emulator";
import { fits } from "../src/version.js";

test("the version is the package's", () => {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url)));
  assert.equal(VERSION, version);
});

test("a version fits whose first two numbers are the same", () => {
  const [major, minor] = VERSION.split(".");
  assert.ok(fits(`${major}.${minor}.99`));
  assert.ok(!fits(`${major}.${Number(minor) + 1}.0`));
  assert.ok(!fits(`${Number(major) + 1}.${minor}.0`));
});
