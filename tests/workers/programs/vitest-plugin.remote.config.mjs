import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

const remoteProxyConnectionString = new URL(process.env.WORKERS_AI_EMULATOR_URL);

export default defineConfig({
  plugins: [
    cloudflareTest({
      remoteBindings: false,
      wrangler: { configPath: "./wrangler.jsonc" },
      miniflare: { ai: { binding: "AI", remoteProxyConnectionString } },
    }),
  ],
  test: { include: ["answers.test.js"] },
});
