// OpenAI's SDK: it reads OPENAI_BASE_URL and OPENAI_API_KEY by itself.

import OpenAI from "openai";
import { EMBEDDING, PROMPT, QUESTION, TEXT, TEXTS, WEATHER, end, faults, openaiUrl, raised, tell } from "./reporting.mjs";

const client = new OpenAI();
const messages = [{ role: "user", content: PROMPT }];
const asking = {
  model: TEXT,
  messages: [{ role: "user", content: QUESTION }],
  tools: [{ type: "function", function: WEATHER }],
  tool_choice: "required",
};

const embed = async (options = {}, of = client) =>
  (await of.embeddings.create({ model: EMBEDDING, input: TEXTS, ...options })).data.map((item) => item.embedding);
const called = (choice) => ({
  calls: choice.message.tool_calls.map(({ function: { name, arguments: given } }) => ({ name, arguments: given })),
  finish: choice.finish_reason,
});

await tell("embedding", async () => {
  const one = await client.embeddings.create({ model: EMBEDDING, input: TEXTS[0] });
  return {
    base64: await embed(),
    float: await embed({ encoding_format: "float" }),
    one: one.data.map((item) => item.embedding),
    usage: one.usage,
  };
});
await tell("chat", async () => {
  const made = await client.chat.completions.create({ model: TEXT, messages });
  const [choice] = made.choices;
  return { text: choice.message.content, finish: choice.finish_reason, usage: made.usage };
});
await tell("stream", async () => {
  const asked = { model: TEXT, messages, stream: true, stream_options: { include_usage: true } };
  const pieces = [];
  let finish, usage;
  for await (const chunk of await client.chat.completions.create(asked)) {
    for (const choice of chunk.choices) {
      pieces.push(choice.delta.content ?? "");
      finish = choice.finish_reason ?? finish;
    }
    usage = chunk.usage ?? usage;
  }
  return { pieces, finish, usage };
});
await tell("tools", async () => called((await client.chat.completions.create(asking)).choices[0]));
await tell("tools_streamed", async () =>
  called((await client.chat.completions.stream(asking).finalChatCompletion()).choices[0]),
);
await tell("responses", async () => {
  const made = await client.responses.create({ model: "@cf/openai/gpt-oss-120b", input: PROMPT });
  return { text: made.output_text, finish: made.status, usage: made.usage };
});
await tell("responses_streamed", async () => {
  const asked = { model: "@cf/openai/gpt-oss-120b", input: PROMPT, stream: true };
  const pieces = [];
  let finish;
  for await (const event of await client.responses.create(asked)) {
    if (event.type === "response.output_text.delta") pieces.push(event.delta);
    if (event.type === "response.completed") finish = event.response.status;
  }
  return { pieces, finish };
});
await tell("models", () => raised(() => client.models.list(), { status: (fault) => fault.status }));
await faults(async (account) => (await embed({}, new OpenAI({ baseURL: openaiUrl(account) }))).length, {
  status: (fault) => fault.status,
});
end();
