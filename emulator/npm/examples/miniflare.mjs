// The Worker under Miniflare by its API, 4 or 5: queued, running, done.
import miniflare from "miniflare";

const options = {
  modules: [{ type: "ESModule", path: "worker.js" }],
  compatibilityDate: "2026-04-01",
  unsafeBindings: [
    {
      name: "AI",
      type: "workersai-emulator",
      plugin: { package: "workersai-emulator", name: "workersai-emulator" },
      options: { url: "http://127.0.0.1:8799" },
    },
  ],
};
const { convertV4MiniflareOptions = (same) => same, Miniflare } = miniflare;
const running = new Miniflare(convertV4MiniflareOptions(options));
const ask = async (path, init) => (await running.dispatchFetch(`http://worker${path}`, init)).json();

const { request_id } = await ask("/batches", { method: "POST", body: JSON.stringify(["orange cloud", "a llama"]) });
for (let polled; !polled?.responses; ) {
  polled = await ask(`/batches/${request_id}`);
  console.log(polled.status ?? `done: ${polled.responses.length} vectors`);
}
console.log(await ask("/models"));
await running.dispose();
