import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [cloudflareTest({ remoteBindings: false, wrangler: { configPath: "./wrangler.emulator.jsonc" } })],
  test: { include: ["answers.test.js"] },
});
