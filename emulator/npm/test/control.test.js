import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { connect, ControlError } from "workersai-emulator";
import { serving } from "./serving.js";

delete process.env.WORKERS_AI_EMULATOR_URL;
afterEach(() => delete process.env.WORKERS_AI_EMULATOR_URL);

const ACCOUNT = "0123456789abcdef0123456789abcdef";
const NOW = "2026-11-29T12:00:00Z";

for (const [what, act, method, path, said] of [
  ["clock.advance", (c) => c.clock.advance("5m"), "POST", "clock", { advance: "5m" }],
  ["clock.freeze", (c) => c.clock.freeze(), "POST", "clock", { freeze: true }],
  ["clock.unfreeze", (c) => c.clock.unfreeze(), "POST", "clock", { freeze: false }],
  ["clock.scale", (c) => c.clock.scale(60), "POST", "clock", { scale: 60 }],
  ["clock.jump", (c) => c.clock.jump(), "POST", "clock", { jump: true }],
  ["clock.set", (c) => c.clock.set(new Date(NOW)), "POST", "clock", { now: "2026-11-29T12:00:00.000Z" }],
  ["rules.add", (c) => c.rules.add({ effect: { delay: "1s" } }), "POST", "rules", { effect: { delay: "1s" } }],
  ["rules.delete", (c) => c.rules.delete("a/b"), "DELETE", "rules/a%2Fb", {}],
  ["rules.clear", (c) => c.rules.clear(), "DELETE", "rules", {}],
  [
    "outputs.add",
    (c) => c.outputs.add({ response: "billing" }, { text: "invoice" }),
    "POST",
    "rules",
    { match: { text: "invoice" }, effect: { output: { response: "billing" } } },
  ],
  ["batches.goOn", (c) => c.batches.goOn("id"), "POST", "batches/id", { action: "go-on" }],
  ["batches.hold", (c) => c.batches.hold("id"), "POST", "batches/id", { action: "hold" }],
  ["batches.fail", (c) => c.batches.fail("id"), "POST", "batches/id", { action: "fail", code: 5001 }],
  ["batches.lose", (c) => c.batches.lose("id"), "POST", "batches/id", { action: "lose" }],
  [
    "fail",
    (c) => c.fail("submit", 3040, { retryAfter: 2 }),
    "POST",
    "rules",
    { match: { operation: "submit" }, effect: { error: 3040, retry_after: 2 }, times: 1 },
  ],
  ["settings", (c) => c.settings({ script: "instant" }), "PATCH", "settings", { script: "instant" }],
  ["reset", (c) => c.reset(), "POST", "reset", {}],
]) {
  test(`${what} is said to the control plane, for the account`, async (t) => {
    const { url, asked } = await serving(t, () => ({ body: { now: NOW } }));
    await act(connect(url, { account: ACCOUNT, token: "secret" }));
    const [{ method: sent, url: at, headers, body }] = asked;
    assert.deepEqual([sent, at], [method, `/__emulator__/${path}`]);
    assert.deepEqual(JSON.parse(body), { ...said, account_id: ACCOUNT });
    assert.equal(headers.authorization, "Bearer secret");
  });
}

test("what is asked for comes back", async (t) => {
  const { url, asked } = await serving(t, () => ({ body: { now: NOW, rules: [1], batches: [2], state: "done" } }));
  const control = connect(url, { account: ACCOUNT });
  assert.deepEqual(await control.clock.now(), new Date(NOW));
  assert.deepEqual(await control.rules.list(), [1]);
  assert.deepEqual(await control.batches.list({ state: "done" }), [2]);
  assert.equal((await control.batches.get("id")).state, "done");
  const paths = ["clock?", "rules?", "batches?state=done&", "batches/id?"];
  assert.deepEqual(
    asked.map((one) => one.url),
    paths.map((path) => `/__emulator__/${path}account_id=${ACCOUNT}`),
  );
});

test("without an account the server's defaults are meant", async (t) => {
  const { url, asked } = await serving(t, () => ({ status: 204 }));
  assert.equal(await connect(url).reset(), undefined);
  assert.equal(asked[0].body, "{}");
});

test("a refusal is thrown in the control plane's words", async (t) => {
  const { url } = await serving(t, () => ({ status: 404, body: { error: "no batch 'x'" } }));
  await assert.rejects(connect(url).batches.get("x"), (fault) => {
    assert.ok(fault instanceof ControlError);
    return fault.status === 404 && fault.message === "no batch 'x'";
  });
});

test("the server is the environment's unless one is given", async (t) => {
  process.env.WORKERS_AI_EMULATOR_URL = "http://127.0.0.1:1";
  assert.equal(connect().url, "http://127.0.0.1:1");
  assert.equal(connect("http://127.0.0.1:2/").url, "http://127.0.0.1:2");
});

test("check says whether the versions fit", async (t) => {
  await connect((await serving(t)).url).check();
  const other = await serving(t, () => ({ body: { version: "99.0.0" } }));
  await assert.rejects(connect(other.url).check(), /99\.0\.0/);
});
