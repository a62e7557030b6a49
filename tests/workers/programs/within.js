// A Worker whose configuration has no binding: it makes an env.AI of its own.
import { createAi } from "workersai-emulator/ai";

import { answers } from "./answers.js";

export default {
  fetch: async (request, env) => Response.json(await answers(env.AI ?? createAi(env.EMULATOR))),
};
