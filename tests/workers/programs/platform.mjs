// getPlatformProxy: the same calls from Node, through its proxy of the binding.
import { getPlatformProxy } from "wrangler";

import { answers } from "./answers.js";

const { env, dispose } = await getPlatformProxy({ configPath: "wrangler.emulator.jsonc" });
console.log("TOLD", JSON.stringify(await answers(env.AI)));
await dispose();
