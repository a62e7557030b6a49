// A Worker with the routes of "AI Batch Infer", as somebody writes it with Hono: texts are queued, batches polled.
import { Hono } from "hono";

const MOST_TEXTS = 20;
const LONGEST_TEXT = 2000;
const REQUEST_ID = /^[a-zA-Z0-9._-]{1,128}$/;
const IN_WORDS =
  "Body must include texts: string[] with 1\u201320 non-empty items (max 2000 chars each)";

class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

const modelOf = (env) => env.MODEL?.trim() || "@cf/baai/bge-m3";
const isObject = (value) => typeof value === "object" && value !== null;

function textsOf(body) {
  const texts = body?.texts;
  if (!Array.isArray(texts) || texts.length < 1 || texts.length > MOST_TEXTS) {
    throw new Refusal(400, "INVALID_BODY", IN_WORDS);
  }
  for (const text of texts) {
    if (typeof text !== "string" || !text.trim() || text.length > LONGEST_TEXT) {
      throw new Refusal(400, "INVALID_BODY", IN_WORDS);
    }
  }
  return texts.map((text) => text.trim());
}

/** What the model answers, whatever goes wrong told as a failure of the batch. */
async function ask(env, inputs, options) {
  try {
    return await env.AI.run(modelOf(env), inputs, options);
  } catch (fault) {
    throw new Refusal(502, "BATCH_ERROR", fault.message);
  }
}

const app = new Hono();

app.onError((fault, context) =>
  context.json({ error: fault.message, code: fault.code ?? "INTERNAL_ERROR" }, fault.status ?? 500),
);

app.post("/batch", async (context) => {
  const body = await context.req.json().catch(() => {
    throw new Refusal(400, "INVALID_BODY", "Request body must be valid JSON");
  });
  const requests = textsOf(body).map((text) => ({ text }));
  if (!context.env.AI) {
    return context.json({
      status: "queued",
      model: modelOf(context.env),
      request_id: `demo-${crypto.randomUUID()}`,
      mode: "demo",
      note: "AI binding unavailable; returning a demo queued response",
    });
  }
  const queued = await ask(context.env, { requests }, { queueRequest: true });
  const { status, model, request_id } = isObject(queued) ? queued : {};
  if (status !== "queued" || typeof request_id !== "string" || typeof model !== "string") {
    throw new Refusal(502, "BATCH_ERROR", "Unexpected batch queue response shape");
  }
  return context.json({ ...queued, mode: "live" });
});

app.get("/batch/:requestId", async (context) => {
  const request_id = context.req.param("requestId").trim();
  if (!REQUEST_ID.test(request_id)) {
    throw new Refusal(400, "INVALID_REQUEST_ID", "Missing or invalid requestId path parameter");
  }
  if (!context.env.AI) {
    return context.json({
      status: "completed",
      model: modelOf(context.env),
      request_id,
      mode: "demo",
      note: "AI binding unavailable; returning demo poll results",
      responses: [{ id: 0, success: true, result: { data: [0.1, 0.2, 0.3] } }],
    });
  }
  const polled = await ask(context.env, { request_id });
  if (!isObject(polled)) throw new Refusal(502, "BATCH_ERROR", "Unexpected batch poll response shape");
  return context.json({ ...polled, mode: "live" });
});

export default app;
