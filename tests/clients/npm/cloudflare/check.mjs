// The official SDK: it reads CLOUDFLARE_BASE_URL and CLOUDFLARE_API_TOKEN by itself.

import Cloudflare from "cloudflare";
import { ACCOUNT, EMBEDDING, PROMPT, QUESTION, TEXT, TEXTS, WEATHER, end, faults, raised, tell } from "./reporting.mjs";

const client = new Cloudflare();
const embed = async (account_id) => (await client.ai.run(EMBEDDING, { account_id, text: TEXTS }))?.data ?? null;
/** The SDK goes on for as long as there are pages. */
const namesOf = async (pages) => {
  const names = [];
  for await (const { name } of pages) {
    names.push(name);
    if (names.length === 1000) break;
  }
  return names;
};
const messages = [{ role: "user", content: PROMPT }];

await tell("embedding", () => embed(ACCOUNT));
await tell("by_path", async () => {
  const path = `/accounts/${ACCOUNT}/ai/run/${EMBEDDING}`;
  return (await client.post(path, { body: { text: TEXTS } })).result.data;
});
await tell("chat", async () => {
  const result = await client.ai.run(TEXT, { account_id: ACCOUNT, messages });
  return { text: result.response, usage: result.usage };
});
await tell("stream", async () => {
  const reply = await client.ai.run(TEXT, { account_id: ACCOUNT, messages, stream: true }).asResponse();
  const lines = (await reply.text()).split("\n").filter((line) => line !== "");
  const events = lines.filter((line) => line !== "data: [DONE]").map((line) => JSON.parse(line.slice("data: ".length)));
  return {
    pieces: events.map((event) => event.response ?? ""),
    usage: events.map((event) => event.usage).findLast((usage) => usage),
    done: lines.at(-1) === "data: [DONE]",
    content_type: reply.headers.get("content-type"),
  };
});
await tell("stream_in_run", () => raised(() => client.ai.run(TEXT, { account_id: ACCOUNT, prompt: "a", stream: true })));
await tell("tools", async () => {
  const asked = { account_id: ACCOUNT, messages: [{ role: "user", content: QUESTION }] };
  const result = await client.ai.run(TEXT, { ...asked, tools: [{ type: "function", function: WEATHER }] });
  return { calls: result.tool_calls.map((call) => ({ name: call.name, arguments: call.arguments })) };
});
await tell("batch", async () => {
  const requests = TEXTS.map((text, place) => ({ text: [text], external_reference: `ref-${place}` }));
  const asked = { account_id: ACCOUNT, requests };
  const queued = await client.ai.run(EMBEDDING, asked, { query: { queueRequest: "true" } });
  const states = [queued.status];
  let polled;
  do {
    polled = await client.ai.run(EMBEDDING, { account_id: ACCOUNT, request_id: queued.request_id });
    if (polled.status) states.push(polled.status);
  } while (!polled.responses);
  return { states, responses: polled.responses, usage: polled.usage };
});
await tell("batch_in_params", async () => {
  const asked = { account_id: ACCOUNT, requests: [{ text: TEXTS }], queueRequest: "true" };
  return Object.keys(await client.ai.run(EMBEDDING, asked));
});
await tell("models", async () => {
  const few = client.ai.models.list({ account_id: ACCOUNT, per_page: 2, search: "bge" });
  const schema = await client.ai.models.schema.get({ account_id: ACCOUNT, model: EMBEDDING });
  return {
    names: await namesOf(client.ai.models.list({ account_id: ACCOUNT })),
    found: await namesOf(few),
    schema: Object.keys(schema).sort(),
    tasks: await namesOf(client.ai.tasks.list({ account_id: ACCOUNT })),
    finetunes: await client.ai.finetunes.list({ account_id: ACCOUNT }),
  };
});
await faults(async (account) => (await embed(account))?.length, {
  status: (fault) => fault.status,
  codes: (fault) => fault.errors.map((error) => error.code),
});
end();
