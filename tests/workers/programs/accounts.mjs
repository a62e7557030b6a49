// Two bindings of one Worker, each with an account of its own.
import miniflare from "miniflare";

const plugin = { package: "workersai-emulator", name: "workersai-emulator" };
const script = `export default {
  async fetch(request, { ONE, TWO }) {
    for (const AI of [ONE, TWO]) await AI.run("@cf/baai/bge-m3", { text: "a llama" });
    return new Response("done");
  },
};`;
const options = {
  modules: [{ type: "ESModule", path: "accounts.js", contents: script }],
  compatibilityDate: "2025-12-01",
  unsafeBindings: [["ONE", "a"], ["TWO", "b"]].map(([name, digit]) => ({
    name,
    type: "workersai-emulator",
    plugin,
    options: { account: digit.repeat(32) },
  })),
};
const { convertV4MiniflareOptions = (same) => same, Miniflare } = miniflare;
const running = new Miniflare(convertV4MiniflareOptions(options));
const reply = await running.dispatchFetch("http://worker/");
await running.dispose();
process.exitCode = (await reply.text()) === "done" ? 0 : 1;
