import { defineWorkersConfig } from "@cloudflare/vitest-pool-workers/config";

const remoteProxyConnectionString = new URL(process.env.WORKERS_AI_EMULATOR_URL);
const workers = {
  remoteBindings: false,
  wrangler: { configPath: "./wrangler.jsonc" },
  miniflare: { ai: { binding: "AI", remoteProxyConnectionString } },
};

export default defineWorkersConfig({ test: { include: ["answers.test.js"], poolOptions: { workers } } });
