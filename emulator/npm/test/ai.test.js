import assert from "node:assert/strict";
import { test } from "node:test";

import { createAi } from "workersai-emulator";
import { serving } from "./serving.js";

test("run sends the model in a header and inputs and options in the body", async (t) => {
  const { url, asked } = await serving(t, () => ({ headers: { "cf-ai-req-id": "one" }, body: { ok: 1 } }));
  const AI = createAi(url, { account: "a".repeat(32) });
  const options = { queueRequest: true, prefix: "pfx", extraHeaders: { "x-mine": "1" }, signal: undefined };
  assert.deepEqual(await AI.run("@cf/baai/bge-m3", { requests: [] }, options), { ok: 1 });
  assert.equal(AI.lastRequestId, "one");
  assert.equal(AI.lastRequestHttpStatusCode, 200);
  const [{ method, url: path, headers, body }] = asked;
  assert.deepEqual([method, path], ["POST", "/run?version=3"]);
  assert.equal(headers["cf-consn-model-id"], "pfx:@cf/baai/bge-m3");
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["x-mine"], "1");
  assert.equal(headers["x-emulator-account"], "a".repeat(32));
  assert.deepEqual(JSON.parse(body), { inputs: { requests: [] }, options: { queueRequest: true } });
});

test("a gateway has a path of its own, and tells the id of its log", async (t) => {
  const { url, asked } = await serving(t, () => ({ headers: { "cf-aig-log-id": "log" }, body: {} }));
  const AI = createAi(url);
  await AI.run("m", {}, { gateway: { id: "ours" } });
  assert.equal(asked[0].url, "/ai-gateway/run?version=3");
  assert.equal(AI.aiGatewayLogId, "log");
});

test("an input that is a stream is the body, and the others are in the query", async (t) => {
  const { url, asked } = await serving(t, () => ({ body: {} }));
  const body = new Response("sound").body;
  await createAi(url).run("m", { audio: { body, contentType: "audio/wav" }, language: "en" });
  const query = new URL(asked[0].url, url).searchParams;
  assert.deepEqual(JSON.parse(query.get("userInputs")), { language: "en" });
  assert.equal(query.get("version"), "3");
  assert.deepEqual([asked[0].body, asked[0].headers["content-type"]], ["sound", "audio/wav"]);
});

for (const [why, inputs, options] of [
  ["two streams", { a: { body: new ReadableStream() }, b: { body: new ReadableStream() } }, {}],
  ["a stream without a type", { a: { body: new ReadableStream() } }, {}],
  ["a stream through a gateway", { a: { body: new ReadableStream(), contentType: "b/c" } }, { gateway: { id: "g" } }],
]) {
  test(`${why} is refused before anything is sent`, async (t) => {
    const { url, asked } = await serving(t);
    await assert.rejects(createAi(url).run("m", inputs, options), { name: "AiInternalError" });
    assert.equal(asked.length, 0);
  });
}

test("what is not exactly application/json is a stream", async (t) => {
  const headers = { "content-type": "application/json; charset=utf-8" };
  const { url } = await serving(t, () => ({ headers, body: "[1]" }));
  const stream = await createAi(url).run("m", {});
  assert.ok(stream instanceof ReadableStream);
  assert.equal(await new Response(stream).text(), "[1]");
});

test("the whole response comes where it is wanted, whatever its status", async (t) => {
  const { url } = await serving(t, () => ({ status: 400, body: "no" }));
  const reply = await createAi(url).run("m", {}, { returnRawResponse: true });
  assert.deepEqual([reply.status, await reply.text()], [400, "no"]);
});

for (const [body, name, message, code] of [
  [{ internalCode: 5007, name: "AiError", description: "none" }, "AiError", "5007: none", 5007],
  [{ internalCode: 5007, name: "AiError", message: "none" }, "AiError", "5007: undefined", 5007],
  [{ errors: [{ code: 3040, message: "full" }] }, "InferenceUpstreamError", "3040: full", null],
  ["<html>", "InferenceUpstreamError", "<html>", null],
  [{ errors: [] }, "InferenceUpstreamError", '{"errors":[]}', null],
]) {
  test(`an error is thrown as workerd throws it: ${JSON.stringify(body)}`, async (t) => {
    const { url } = await serving(t, () => ({ status: 400, body }));
    const AI = createAi(url);
    await assert.rejects(AI.run("m", {}), { name, message });
    assert.equal(AI.lastRequestInternalStatusCode, code);
  });
}

test("models are searched by the query", async (t) => {
  const { url, asked } = await serving(t, () => ({ body: { success: true, result: [{ name: "m" }] } }));
  assert.deepEqual(await createAi(url).models({ task: "Text Embeddings", per_page: 1 }), [{ name: "m" }]);
  await createAi(url).models();
  assert.deepEqual(
    asked.map((one) => one.url),
    ["/ai-api/models/search?task=Text+Embeddings&per_page=1", "/ai-api/models/search"],
  );
});

test("a search that fails is thrown in the service's words", async (t) => {
  const { url } = await serving(t, () => ({ status: 400, body: { errors: [{ message: "bad page" }] } }));
  await assert.rejects(createAi(url).models(), { name: "AiInternalError", message: "bad page" });
});

test("files become Markdown, one or many", async (t) => {
  const { url, asked } = await serving(t, () => ({ body: { result: [{ data: "# One" }] } }));
  const AI = createAi(url);
  const file = { name: "one.html", blob: new Blob(["<h1>\u00e9</h1>"], { type: "text/html" }) };
  assert.deepEqual(await AI.toMarkdown(file), { data: "# One" });
  assert.deepEqual(await AI.toMarkdown([file]), [{ data: "# One" }]);
  const data = Buffer.from("<h1>\u00e9</h1>").toString("base64");
  assert.deepEqual(JSON.parse(asked[0].body).files, [{ name: "one.html", mimeType: "text/html", data }]);
  await AI.toMarkdown().supported();
  assert.equal(asked[2].url, "/to-everything/markdown/supported");
});

test("a gateway's log has its time as a Date, and can be changed", async (t) => {
  const { url, asked } = await serving(t, ({ method }) => ({
    body: method === "GET" ? { result: { id: "l", created_at: "2026-11-29T12:00:00Z" } } : {},
  }));
  const gateway = createAi(url).gateway("ours");
  assert.deepEqual((await gateway.getLog("l")).created_at, new Date("2026-11-29T12:00:00Z"));
  await gateway.patchLog("l", { score: 1 });
  assert.deepEqual([asked[1].method, asked[1].url], ["PATCH", "/ai-gateway/gateways/ours/logs/l"]);
});

test("what has no HTTP says so", async () => {
  const AI = createAi("http://127.0.0.1:1");
  assert.throws(() => AI.aiSearch(), /createAi has no aiSearch/);
  await assert.rejects(AI.run("m", {}, { websocket: true }), /createAi has no WebSocket/);
});

for (const url of ["nowhere", "ftp://127.0.0.1", "http://127.0.0.1:8799/client/v4"]) {
  test(`${url} is no root`, () => assert.throws(() => createAi(url), TypeError));
}
