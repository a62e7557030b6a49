import { env } from "cloudflare:test";
import { beforeEach, expect, inject, test } from "vitest";

import worker from "./worker.js";

// The control plane is plain HTTP, which a test inside workerd can speak as well.
const control = (path, body = {}) =>
  fetch(`${inject("emulator")}/__emulator__/${path}`, { method: "POST", body: JSON.stringify(body) });
const ask = (path, init) => worker.fetch(new Request(`http://worker${path}`, init), env);
const submit = (...texts) => ask("/batches", { method: "POST", body: JSON.stringify(texts) });

beforeEach(() => control("reset"));

test("a batch is queued for five minutes, of which none passes here", async () => {
  const { request_id } = await (await submit("orange cloud", "a llama")).json();
  expect((await (await ask(`/batches/${request_id}`)).json()).status).toBe("queued");
  await control("clock", { advance: "5m" });
  expect((await (await ask(`/batches/${request_id}`)).json()).responses).toHaveLength(2);
});

test("the queue can be out of capacity", async () => {
  await control("rules", { match: { operation: "submit" }, times: 1, effect: { error: 3040 } });
  const refused = await submit("a llama");
  expect(refused.status).toBe(502);
  expect((await refused.json()).error).toMatch(/^3040: /);
  expect((await submit("a llama")).status).toBe(202);
});

test("a text is streamed as events", async () => {
  const events = await (await ask("/say?prompt=hello")).text();
  expect(events).toMatch(/^data: \{.*\n\ndata: \[DONE\]\n\n$/s);
});

test("models are listed", async () => {
  expect(await (await ask("/models")).json()).toContain("@cf/baai/bge-m3");
});
