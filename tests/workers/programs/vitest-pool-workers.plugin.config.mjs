import { defineWorkersConfig } from "@cloudflare/vitest-pool-workers/config";

const workers = { remoteBindings: false, wrangler: { configPath: "./wrangler.emulator.jsonc" } };

export default defineWorkersConfig({ test: { include: ["answers.test.js"], poolOptions: { workers } } });
