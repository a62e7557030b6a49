// TanStack AI's adapter: its host is in its code, so the program's fetch is the one that goes elsewhere.

import { createWorkersAiChat } from "@cloudflare/tanstack-ai";
import { chat } from "@tanstack/ai";
import { ACCOUNT, PROMPT, TEXT, TOKEN, emulatorFetch, end, faults, tell } from "./reporting.mjs";

globalThis.fetch = emulatorFetch;

async function streamed(accountId) {
  const adapter = createWorkersAiChat(TEXT, { accountId, apiKey: TOKEN });
  const pieces = [];
  let finish;
  for await (const event of chat({ adapter, messages: [{ role: "user", content: PROMPT }] })) {
    if (event.type === "TEXT_MESSAGE_CONTENT") pieces.push(event.delta);
    if (event.type === "RUN_FINISHED") finish = event.metadata.tanstack.finishReason;
    if (event.type === "RUN_ERROR") throw new Error(event.message);
  }
  return { pieces, finish };
}

await tell("stream", () => streamed(ACCOUNT));
await faults(async (account) => (await streamed(account)).pieces.length > 1);
end();
