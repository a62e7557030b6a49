import { answers } from "../answers.js";

export const onRequest = async ({ env }) => Response.json(await answers(env.AI));
