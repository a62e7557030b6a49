// The AI SDK's provider for Workers AI: it has no base URL, and takes a fetch.

import { embedMany, experimental_transcribe, generateImage, generateText, jsonSchema, rerank, streamText, tool } from "ai";
import { createWorkersAI } from "workers-ai-provider";
import {
  ACCOUNT,
  EMBEDDING,
  PROMPT,
  QUESTION,
  TEXT,
  TEXTS,
  TOKEN,
  WEATHER,
  emulatorFetch,
  end,
  faults,
  tell,
} from "./reporting.mjs";

const workersai = (accountId) => createWorkersAI({ accountId, apiKey: TOKEN, fetch: emulatorFetch });
const embed = async (account) =>
  (await embedMany({ model: workersai(account).embedding(EMBEDDING), values: TEXTS })).embeddings;
const model = workersai(ACCOUNT)(TEXT);

await tell("embedding", () => embed(ACCOUNT));
await tell("chat", async () => {
  const { text, finishReason, usage } = await generateText({ model, prompt: PROMPT });
  return { text, finish: finishReason, usage: { prompt_tokens: usage.inputTokens, completion_tokens: usage.outputTokens } };
});
await tell("stream", async () => {
  const faults = [];
  const streamed = streamText({ model, prompt: PROMPT, onError: ({ error }) => faults.push(error) });
  const pieces = [];
  for await (const piece of streamed.textStream) pieces.push(piece);
  if (faults.length > 0) throw faults[0];
  return { pieces, finish: await streamed.finishReason };
});
const { name, description, parameters } = WEATHER;
const tools = { [name]: tool({ description, inputSchema: jsonSchema(parameters) }) };

await tell("tools", async () => {
  const { toolCalls } = await generateText({ model, prompt: QUESTION, tools, toolChoice: "required" });
  return { calls: toolCalls.map((call) => ({ name: call.toolName, arguments: call.input })) };
});
await tell("tools_streamed", async () => {
  const streamed = streamText({ model, prompt: QUESTION, tools, toolChoice: "required" });
  const calls = await streamed.toolCalls;
  return {
    calls: calls.map((call) => ({ name: call.toolName, arguments: call.input })),
    finish: await streamed.finishReason,
  };
});
await tell("reranked", async () => {
  const reranking = workersai(ACCOUNT).reranking("@cf/baai/bge-reranker-base");
  return (await rerank({ model: reranking, query: "a llama", documents: TEXTS })).rerankedDocuments;
});
await tell("images", async () => {
  const image = workersai(ACCOUNT).image("@cf/black-forest-labs/flux-1-schnell");
  const made = await generateImage({ model: image, prompt: PROMPT, size: "512x512" });
  return { in_json: Buffer.from(made.image.uint8Array.slice(0, 3)).toString("hex") };
});
await tell("transcribed", async () => {
  const transcription = workersai(ACCOUNT).transcription("@cf/openai/whisper-large-v3-turbo");
  const silence = Buffer.from("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=", "base64");
  return (await experimental_transcribe({ model: transcription, audio: silence })).text;
});
await faults(async (account) => (await embed(account)).length, {
  status: (fault) => (fault.lastError ?? fault).statusCode,
});
end();
