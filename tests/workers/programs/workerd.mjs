// Plain workerd, with its binding in a configuration of its own.
import { withWorkerd } from "./serving.mjs";

await withWorkerd("workerd.capnp", ["http"], process.env.WORKERS_AI_EMULATOR_URL, async ({ http }) => {
  const reply = await fetch(http);
  console.log("TOLD", await reply.text());
});
