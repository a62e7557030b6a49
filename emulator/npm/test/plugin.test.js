import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { plugins } from "workersai-emulator";
import { serving } from "./serving.js";

const plugin = plugins["workersai-emulator"];
const OURS = { package: "workersai-emulator", name: "workersai-emulator" };
const forFour = (options) => [{ name: "AI", type: "workersai-emulator", plugin: OURS, options }];
const forFive = (options) => ({
  config: {
    env: {
      AI: { type: "unsafe:workersai-emulator", dev: { plugin: OURS, options } },
      OTHER: { type: "unsafe:other", dev: { plugin: { package: "other", name: "other" }, options: {} } },
      GREETING: { type: "text", value: "hello" },
    },
  },
});
const log = () => {
  const warned = [];
  return { warned, warn: (line) => warned.push(line) };
};

delete process.env.WORKERS_AI_EMULATOR_URL;
afterEach(() => delete process.env.WORKERS_AI_EMULATOR_URL);

for (const [version, worker] of [["4", forFour], ["5", forFive]]) {
  test(`Miniflare ${version} binds workerd's own module to the emulator`, async (t) => {
    const { url } = await serving(t);
    const told = log();
    const [service, ...more] = await plugin.getServices({ options: worker({ url }), log: told });
    assert.deepEqual(more, []);
    assert.deepEqual(service.external, { address: new URL(url).host, http: {} });
    const [binding] = await plugin.getBindings(worker({ url }));
    assert.equal(binding.name, "AI");
    assert.equal(binding.wrapped.moduleName, "cloudflare-internal:ai-api");
    assert.deepEqual(binding.wrapped.innerBindings, [{ name: "fetcher", service: { name: service.name } }]);
    assert.deepEqual(told.warned, []);
  });
}

test("a Worker without our binding gets nothing", async () => {
  assert.deepEqual(await plugin.getBindings({ config: {} }), []);
  assert.deepEqual(await plugin.getBindings([]), []);
  assert.deepEqual(plugin.getNodeBindings({ config: {} }), {});
  assert.deepEqual(await plugin.getServices({ options: { config: {} }, log: log() }), []);
});

test("an account is told by a header, and has a service of its own", async (t) => {
  const { url } = await serving(t);
  const account = "0123456789abcdef0123456789abcdef";
  const [service] = await plugin.getServices({ options: forFour({ url, account }), log: log() });
  assert.deepEqual(service.external.http, { injectRequestHeaders: [{ name: "x-emulator-account", value: account }] });
  const [other] = await plugin.getServices({ options: forFour({ url }), log: log() });
  assert.notEqual(service.name, other.name);
});

test("the environment's URL goes before the configuration's", async (t) => {
  const { url } = await serving(t);
  process.env.WORKERS_AI_EMULATOR_URL = `${url}/`;
  const [service] = await plugin.getServices({ options: forFour({ url: "http://127.0.0.1:1" }), log: log() });
  assert.equal(service.external.address, new URL(url).host);
});

test("a URL with https is spoken to by TLS", async () => {
  const [service] = await plugin.getServices({ options: forFour({ url: "https://emulator.invalid" }), log: log() });
  assert.equal(service.external.address, "emulator.invalid:443");
  assert.equal(service.external.https.certificateHost, "emulator.invalid");
});

for (const options of [{ url: "nowhere" }, { url: "http://127.0.0.1:8799/client/v4" }, { account: "mine" }]) {
  test(`options that cannot be are refused: ${JSON.stringify(options)}`, async () => {
    await assert.rejects(plugin.getBindings(forFour(options)), { name: "TypeError", message: /workersai-emulator: / });
  });
}

for (const [why, answer, said] of [
  ["another version", () => ({ body: { version: "99.0.0" } }), /is 99\.0\.0 and the npm package/],
  [
    "another version, whose control plane is closed",
    () => ({ status: 403, headers: { server: "workersai-emulator/99.0.0" }, body: { error: "no" } }),
    /is 99\.0\.0/,
  ],
  ["something else", () => ({ body: "<html>" }), /is no workersai-emulator/],
]) {
  test(`the log is told once of ${why}`, async (t) => {
    const { url } = await serving(t, answer);
    const told = log();
    await plugin.getServices({ options: [...forFour({ url }), ...forFour({ url })], log: told });
    assert.equal(told.warned.length, 1);
    assert.match(told.warned[0], said);
  });
}

test("the log is told when nothing answers", async () => {
  const told = log();
  await plugin.getServices({ options: forFour({ url: "http://127.0.0.1:1" }), log: told });
  assert.match(told.warned[0], /nothing answers at http:\/\/127\.0\.0\.1:1 .*workersai-emulator serve/);
});
