// LangChain's integration: `baseUrl` up to `/ai/run`; its embeddings take a binding and nothing else.

import { ChatCloudflareWorkersAI, CloudflareWorkersAI, CloudflareWorkersAIEmbeddings } from "@langchain/cloudflare";
import { ACCOUNT, BASE_URL, EMBEDDING, PROMPT, TEXT, TEXTS, TOKEN, end, faults, restBinding, tell } from "./reporting.mjs";

const where = (account) => ({
  baseUrl: `${BASE_URL}/accounts/${account}/ai/run`,
  cloudflareAccountId: account,
  cloudflareApiToken: TOKEN,
  model: TEXT,
});
const model = new ChatCloudflareWorkersAI(where(ACCOUNT));

await tell("embedding", () =>
  new CloudflareWorkersAIEmbeddings({ binding: restBinding(ACCOUNT), model: EMBEDDING }).embedDocuments(TEXTS),
);
await tell("chat", async () => ({ text: (await model.invoke(PROMPT)).content }));
await tell("completion", async () => ({ text: await new CloudflareWorkersAI(where(ACCOUNT)).invoke(PROMPT) }));
await tell("stream", async () => {
  const pieces = [];
  for await (const chunk of await model.stream(PROMPT)) pieces.push(chunk.content);
  return { pieces };
});
await faults(
  async (account) => (await new ChatCloudflareWorkersAI({ ...where(account), maxRetries: 1 }).invoke(PROMPT)).content,
);
end();
