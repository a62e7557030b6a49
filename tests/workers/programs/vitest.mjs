// Vitest with the configuration of this name, its tests inside workerd.
import { startVitest } from "vitest/node";

const config = `${process.argv[2]}.config.mjs`;
const vitest = await startVitest("test", [], { config, run: true, watch: false });
await vitest.close();
