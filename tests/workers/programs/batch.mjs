// The Worker on Hono under plain workerd, with its binding and without: its roots on stdout, until stdin ends.
import { once } from "node:events";

import { buildSync } from "esbuild";

import { withWorkerd } from "./serving.mjs";

buildSync({ entryPoints: ["batch_worker.js"], outfile: "batch.bundled.js", bundle: true, format: "esm" });
await withWorkerd("batch.capnp", ["live", "demo"], process.env.WORKERS_AI_EMULATOR_URL, async (roots) => {
  console.log("TOLD", JSON.stringify(roots));
  await once(process.stdin.resume(), "end");
});
