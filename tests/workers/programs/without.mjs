// No runtime at all: createAi in plain Node.
import { createAi } from "workersai-emulator";

import { answers } from "./answers.js";

console.log("TOLD", JSON.stringify(await answers(createAi(process.env.WORKERS_AI_EMULATOR_URL))));
