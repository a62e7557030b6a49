import { answers } from "./answers.js";

export default {
  fetch: async (request, env) => Response.json(await answers(env.AI)),
};
