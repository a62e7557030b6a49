// Miniflare 4 and 5 by its API: `plugin` is ours, `remote` its own way to a binding that is elsewhere, and `within` no
// binding at all.
import { buildSync } from "esbuild";
import miniflare from "miniflare";

const url = process.env.WORKERS_AI_EMULATOR_URL;
const plugin = { package: "workersai-emulator", name: "workersai-emulator" };
const modules = ["worker.js", "answers.js"].map((path) => ({ type: "ESModule", path }));
const ways = {
  plugin: () => ({ modules, unsafeBindings: [{ name: "AI", type: "workersai-emulator", plugin, options: { url } }] }),
  remote: () => ({ modules, ai: { binding: "AI", remoteProxyConnectionString: new URL(url) } }),
  within: () => {
    const path = "within.bundled.js";
    buildSync({ entryPoints: ["within.js"], outfile: path, bundle: true, format: "esm" });
    return { modules: [{ type: "ESModule", path }], bindings: { EMULATOR: url } };
  },
};
const { convertV4MiniflareOptions = (same) => same, Miniflare } = miniflare;
const options = { compatibilityDate: "2025-12-01", ...ways[process.argv[2]]() };
const running = new Miniflare(convertV4MiniflareOptions(options));
const reply = await running.dispatchFetch("http://worker/");
console.log("TOLD", await reply.text());
await running.dispose();
