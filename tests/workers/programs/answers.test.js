import { env } from "cloudflare:test";
import { expect, test } from "vitest";

import { answers } from "./answers.js";

test("the binding answers in a test", async () => {
  const told = await answers(env.AI);
  console.log("TOLD", JSON.stringify(told));
  expect(told.batch.polls.map(({ status }) => status)).toEqual(["queued", "running", undefined]);
});
