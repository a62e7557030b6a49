// Chroma's embedding function: its host is a constant, so the program's fetch is the one that goes elsewhere.

import { CloudflareWorkerAIEmbeddingFunction } from "@chroma-core/cloudflare-worker-ai";
import { ACCOUNT, EMBEDDING, TEXTS, TOKEN, emulatorFetch, end, faults, tell } from "./reporting.mjs";

globalThis.fetch = emulatorFetch;

const embed = (accountId) =>
  new CloudflareWorkerAIEmbeddingFunction({ accountId, apiKey: TOKEN, modelName: EMBEDDING }).generate(TEXTS);

await tell("embedding", () => embed(ACCOUNT));
await faults(async (account) => (await embed(account)).length);
end();
