// Two libraries for Workers that take a binding: ten lines make one of the REST API.

import { Ai } from "@cloudflare/ai";
import { runWithTools } from "@cloudflare/ai-utils";
import { ACCOUNT, EMBEDDING, PROMPT, QUESTION, TEXT, TEXTS, WEATHER, end, faults, restBinding, tell } from "./reporting.mjs";

const ai = new Ai(restBinding(ACCOUNT));

await tell("embedding", async () => (await ai.run(EMBEDDING, { text: TEXTS })).data);
await tell("chat", async () => {
  const result = await ai.run(TEXT, { messages: [{ role: "user", content: PROMPT }] });
  return { text: result.response, usage: result.usage };
});
await tell("tools", async () => {
  const calls = [];
  const take = (given) => {
    calls.push({ name: WEATHER.name, arguments: given });
    return { degrees: 21 };
  };
  const messages = [{ role: "user", content: QUESTION }];
  const binding = restBinding(ACCOUNT);
  const said = await runWithTools(binding, TEXT, { messages, tools: [{ ...WEATHER, function: take }] });
  return { calls, text: said.response };
});
await faults(async (account) => (await new Ai(restBinding(account)).run(EMBEDDING, { text: TEXTS })).data.length);
end();
